"""From text to tokens: the preprocessor."""
