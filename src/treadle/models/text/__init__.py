"""Text as models see it: tokens, streams of text, chat templates."""

from treadle.models.text.chat import chat_template_of_gguf, chat_text, chat_tokens
from treadle.models.text.folder_tokenizer import FolderTokenizer, tokenizer_of_folder
from treadle.models.text.streams import StopStrings, TextStream
from treadle.models.text.tokenizer import Tokenizer, tokenizer_of_gguf

__all__ = [
    "FolderTokenizer",
    "StopStrings",
    "TextStream",
    "Tokenizer",
    "chat_template_of_gguf",
    "chat_text",
    "chat_tokens",
    "tokenizer_of_folder",
    "tokenizer_of_gguf",
]
