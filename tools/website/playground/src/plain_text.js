// Text without the codes by which programs colour a terminal or move its cursor: the page shows text
// as it is. Libraries that are asked for colours (FORCE_COLOR) write such codes anywhere.

// A code with its parameters (CSI), one with a text (OSC and its like), one of two characters.
const CODE = /\x1b(?:\[[0-?]*[ -\/]*[@-~]|[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)|[ -\/]*[0-OQ-WYZ\\`-~])/g;
const BEGUN = /\x1b(?:\[[0-?]*[ -\/]*|[\]P^_X][^\x07\x1b]{0,999}\x1b?|[ -\/]*)$/;

/** A function that takes the parts of a text in order, and gives what is to be shown of them. */
export function plainText() {
  let kept = ""; // the beginning of a code, whose end is in the next part
  return (part) => {
    const text = (kept + part).replace(CODE, "");
    kept = text.match(BEGUN)?.[0] ?? "";
    return text.slice(0, text.length - kept.length);
  };
}
