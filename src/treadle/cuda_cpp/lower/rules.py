"""The rules of the lowering that modules below their own call, as one record."""

from __future__ import annotations

from treadle.cuda_cpp.lower import (
    calls,
    classes,
    comparisons,
    constraints,
    constructors,
    copies,
    expressions,
    function_pointers,
    launches,
    members,
    names,
    statements,
    storage,
    template_arguments,
    templates,
    traits,
)
from treadle.cuda_cpp.lower.context import Rules

RULES = Rules(
    expressions=expressions.HANDLERS,
    statement=statements.lower_statement,
    resolve=names.resolve,
    member_of=members.member_of,
    class_type=classes.class_type,
    enumerator=classes.enumerator,
    class_instance=templates.class_instance,
    method_of_instance=templates.method_of_instance,
    bind_arguments=template_arguments.bind_arguments,
    transformed=traits.transformed,
    function_pointer=function_pointers.function_pointer,
    launch=launches.launch,
    call_chosen=calls.call_chosen,
    construct=constructors.construct,
    constructed_from=constructors.constructed_from,
    run_constructor=constructors.run_constructor,
    text_pointer=storage.text_pointer,
    copy_into=copies.copy_into,
    destroy=copies.destroy,
    has_converting_constructor=constructors.has_converting_constructor,
    call_conversion=calls.call_conversion,
    conversion_result=calls.conversion_result,
    call_operator=calls.call_operator,
    chosen_operator=calls.chosen_operator,
    rewritten=comparisons.rewritten,
    three_way=comparisons.three_way,
    satisfied=constraints.satisfied,
    stricter=constraints.stricter,
)
