// The editor: CodeMirror, in the colours of the documentation's theme, so that it follows its
// light and dark palette without a second set of colours.

import { basicSetup, EditorView } from "codemirror";
import { EditorState } from "@codemirror/state";
import { keymap } from "@codemirror/view";
import { indentWithTab } from "@codemirror/commands";
import { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { cpp } from "@codemirror/lang-cpp";
import { python } from "@codemirror/lang-python";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { tags } from "@lezer/highlight";

const colour = (name) => `var(--md-code-hl-${name}-color)`;

const highlighting = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.self], color: colour("keyword") },
  { tag: [tags.string, tags.special(tags.string)], color: colour("string") },
  { tag: [tags.number, tags.bool, tags.null], color: colour("number") },
  { tag: tags.comment, color: colour("comment") },
  { tag: [tags.function(tags.variableName), tags.definition(tags.function(tags.variableName))], color: colour("function") },
  { tag: [tags.typeName, tags.className], color: colour("constant") },
  { tag: [tags.operator, tags.punctuation], color: colour("operator") },
  { tag: tags.meta, color: colour("special") },
]);

const theme = EditorView.theme({
  "&": { color: "var(--md-code-fg-color)", backgroundColor: "var(--md-code-bg-color)", height: "100%" },
  ".cm-scroller": { fontFamily: "var(--md-code-font, monospace)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--md-default-fg-color)" },
  ".cm-cursor": { borderLeftColor: "var(--md-default-fg-color)" },
  ".cm-gutters": { color: "var(--md-default-fg-color--light)", backgroundColor: "transparent", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--playground-line)" },
  // The editor's own rules for a focused selection are more specific than "&".
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground, ::selection":
    { backgroundColor: "var(--playground-selection) !important" },
  ".cm-tooltip": { color: "var(--md-default-fg-color)", backgroundColor: "var(--md-default-bg-color)", border: "1px solid var(--md-default-fg-color--lighter)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { color: "var(--md-accent-bg-color)", backgroundColor: "var(--md-accent-fg-color)" },
  ".cm-panels, .cm-button, .cm-textfield": { color: "var(--md-default-fg-color)", background: "var(--md-default-bg-color)" },
});

// What all editors of the page share. The shortcut for running comes first: CodeMirror would
// insert a line otherwise.
const common = [
  basicSetup,
  EditorView.lineWrapping,
  syntaxHighlighting(highlighting),
  theme,
];

/** An editor for Python in `parent`. `run` is called for Ctrl+Enter, `changed` after each edit. */
export function createEditor(parent, { run, changed }) {
  const view = new EditorView({
    parent,
    extensions: [
      keymap.of([
        { key: "Mod-Enter", preventDefault: true, run: () => (run(), true) },
        { key: "Shift-Enter", preventDefault: true, run: () => (run(), true) },
        indentWithTab, // Escape, then Tab, moves on to the next control
      ]),
      common,
      python(),
      indentUnit.of("    "),
      lintGutter(),
      EditorView.contentAttributes.of({ "aria-label": "Program in Python" }),
      EditorView.updateListener.of((update) => update.docChanged && changed()),
    ],
  });
  return {
    get text() { return view.state.doc.toString(); },
    set text(text) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 } });
      this.mark([]);
    },
    /** Show errors: `{line, column, endColumn, message}`, counted from 1, at their places. */
    mark(errors) {
      view.dispatch(setDiagnostics(view.state, errors.map((error) => diagnostic(view.state.doc, error))));
      if (errors.length) {
        const { from } = diagnostic(view.state.doc, errors[0]);
        view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
      }
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

function diagnostic(text, { line, column, endColumn, message }) {
  // The program may have been edited since it was run, so that the place need not exist any more.
  const at = text.line(Math.min(Math.max(line, 1), text.lines));
  const from = Math.min(at.from + Math.max(column - 1, 0), at.to);
  const to = Math.min(Math.max(at.from + endColumn - 1, from + 1), at.to);
  return { from: Math.min(from, to), to, severity: "error", message };
}

/** Text to read, in an editor's colours: one of "cpp", "python" or "text". */
export function showText(parent, text, language) {
  const languages = { cpp: [cpp()], python: [python()] };
  return new EditorView({
    parent,
    doc: text,
    extensions: [
      EditorState.readOnly.of(true),
      common,
      languages[language] ?? [],
      EditorView.contentAttributes.of({ "aria-readonly": "true" }),
    ],
  });
}
