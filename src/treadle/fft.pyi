from treadle.tensor.fft import *
