from treadle.core.errors import *
