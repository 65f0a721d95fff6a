package repo

// apply makes an object of its base and a delta. ok is false if the delta is not
// one of this base, or does not make what it says.
func apply(base, delta []byte, most int) (out []byte, size uint64, ok bool) {
	was, delta, ok := varint(delta)
	if !ok || was != uint64(len(base)) {
		return nil, 0, false
	}
	size, delta, ok = varint(delta)
	if !ok || size > uint64(most) {
		return nil, size, false
	}
	out = make([]byte, 0, size)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		if op&0x80 == 0 {
			n := int(op)
			if n == 0 || n > len(delta) || n > cap(out)-len(out) {
				return nil, size, false
			}
			out = append(out, delta[:n]...)
			delta = delta[n:]
			continue
		}
		var from, n int
		for i := range 7 {
			if op>>i&1 == 0 {
				continue
			}
			if len(delta) == 0 {
				return nil, size, false
			}
			if i < 4 {
				from |= int(delta[0]) << (8 * i)
			} else {
				n |= int(delta[0]) << (8 * (i - 4))
			}
			delta = delta[1:]
		}
		if n == 0 {
			n = 0x10000
		}
		if from > len(base) || n > len(base)-from || n > cap(out)-len(out) {
			return nil, size, false
		}
		out = append(out, base[from:from+n]...)
	}
	return out, size, uint64(len(out)) == size
}

// varint reads a number of which the lowest seven bits come first.
func varint(b []byte) (v uint64, rest []byte, ok bool) {
	for i := 0; i < len(b) && i < 9; i++ {
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i]&0x80 == 0 {
			return v, b[i+1:], true
		}
	}
	return 0, b, false
}
