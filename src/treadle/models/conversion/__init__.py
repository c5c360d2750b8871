"""Models in the folders of Hugging Face's libraries, as GGUF files have them."""

from treadle.models.conversion.folder import Converted, converted_folder

__all__ = ["Converted", "converted_folder"]
