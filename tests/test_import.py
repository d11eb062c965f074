import varnn
