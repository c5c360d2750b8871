"""64-bit integers for targets that have none: each is a pair of 32-bit words, the low one first.

`pair_words(kernel)` gives a kernel without i64 and u64, that computes the same. A value of 64 bits
is a vec2<u32> in registers and in memory, where it takes the same bytes; a vector of them is a
struct of pairs. Arithmetic is done by small functions in IR (`functions`), of which a kernel gets
those it calls.

Most 64-bit integers of GPU code are indices that fit 32 bits. So a variable that provably does is
one word (`ir.passes.variable_ranges`), and of an expression whose low half is all that is asked
for, as in `int(a + b)` or an index that a check guards, only the low half is computed.
"""

from treadle.ir.passes.wide.kernels import pair_words as pair_words
