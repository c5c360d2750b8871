from treadle.tensor.linalg import *
