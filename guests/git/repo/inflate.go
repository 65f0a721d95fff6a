package repo

import (
	"encoding/binary"
	"errors"
	"hash/adler32"
	"math/bits"
)

// This is our own decoder of zlib's format (RFC 1950 and 1951) for what is in packs:
// it is known how long an object is, and so it is written where it belongs, without a
// window, and tables are made again in place. In WebAssembly that takes a third of the
// time of compress/zlib for the small objects of which a history consists. What it
// makes is tested against that.

var (
	errInflate = errors.New("the compressed data is damaged")
	errLonger  = errors.New("it is longer than it says")
)

// inflater is used again: its tables are large.
type inflater struct {
	in     *reader
	bits   uint64 // that were read and not used, the next one lowest
	n      uint
	out    []byte
	at     int
	ended  bool // the input has
	lit    huffman
	dist   huffman
	fixed  bool // lit and dist are those of blocks without tables of their own
	lens   [maxLit + maxDist]uint8
	zeroes uint // bits behind the end of the input that were made up
}

const (
	maxLit   = 288
	maxDist  = 32
	maxBits  = 15
	fastBits = 9
)

// huffman decodes symbols of up to fastBits bits by a table, and others bit by bit.
type huffman struct {
	fast    [1 << fastBits]uint16 // symbol<<4 | bits, or 0
	mask    uint64                // of the bits that it is looked up by: no more than the longest code has
	count   [maxBits + 1]uint16   // codes by their bits
	symbols [maxLit]uint16        // in the order of codes; of the longer ones only
}

// build makes the tables of the lengths of codes. It reports whether these are such as
// a complete code has, or one of a single symbol.
func (h *huffman) build(lens []uint8) bool {
	h.count = [maxBits + 1]uint16{}
	for _, l := range lens {
		h.count[l]++
	}
	h.count[0] = 0
	left, used, longest := 1, 0, 0
	var next, offset [maxBits + 2]uint16
	for l := 1; l <= maxBits; l++ {
		left = left<<1 - int(h.count[l])
		if left < 0 {
			return false
		}
		if used += int(h.count[l]); h.count[l] > 0 {
			longest = l
		}
		next[l+1] = (next[l] + h.count[l]) << 1
		offset[l+1] = offset[l] + h.count[l]
	}
	if left > 0 && (used > 1 || used == 1 && h.count[1] != 1) {
		return false
	}
	size := 1 << min(longest, fastBits)
	h.mask = uint64(size - 1)
	fast := h.fast[:size]
	clear(fast)
	for sym, l := range lens {
		if l == 0 {
			continue
		}
		if l > fastBits {
			h.symbols[offset[l]] = uint16(sym)
			offset[l]++
			continue
		}
		code := next[l]
		next[l]++
		for i, step := int(bits.Reverse16(code)>>(16-l)), 1<<l; i < len(fast); i += step {
			fast[i] = uint16(sym)<<4 | uint16(l)
		}
	}
	return true
}

// refill makes sure that there are 48 bits, if need be zeroes behind the end.
func (z *inflater) refill() {
	for z.n <= 56 {
		if len(z.in.have) == 0 && (z.ended || z.in.fill() != nil) {
			z.ended = true
			z.zeroes += 8
			z.n += 8
			continue
		}
		if len(z.in.have) >= 8 {
			z.bits |= binary.LittleEndian.Uint64(z.in.have) << z.n
			taken := (63 - z.n) >> 3
			z.in.have = z.in.have[taken:]
			z.n += taken * 8
			return
		}
		z.bits |= uint64(z.in.have[0]) << z.n
		z.in.have = z.in.have[1:]
		z.n += 8
	}
}

// take returns the next bits, 16 at most.
func (z *inflater) take(n uint) uint32 {
	if z.n < n {
		z.refill()
	}
	v := uint32(z.bits) & (1<<n - 1)
	z.bits >>= n
	z.n -= n
	return v
}

// symbol decodes the first of some bits, and says how many are its; 0 if none has them.
func (h *huffman) symbol(next uint64) (sym int, n uint) {
	if e := h.fast[next&h.mask&(1<<fastBits-1)]; e != 0 {
		return int(e >> 4), uint(e & 15)
	}
	code, first, index := 0, 0, 0
	for l := uint(1); l <= maxBits; l++ {
		code |= int(next & 1)
		next >>= 1
		count := int(h.count[l])
		if code-count < first {
			return int(h.symbols[index+code-first]), l
		}
		index += count
		first = (first + count) << 1
		code <<= 1
	}
	return 0, 0
}

// The lengths and distances of matches, with the bits that follow.
var (
	lengthBase = [...]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthBits = [...]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distBase   = [...]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	distBits   = [...]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
	lensOrder  = [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
)

// inflate fills out, and sees that this is all; cut says that there is more.
func (z *inflater) inflate(in *reader, out []byte, cut bool) error {
	z.in, z.bits, z.n, z.ended, z.zeroes = in, 0, 0, false, 0
	z.out, z.at = out, 0
	head := z.take(16)
	if head&0x0f != 8 || head>>4&0x0f > 7 || (head&0xff<<8|head>>8)%31 != 0 || head>>8&0x20 != 0 {
		return errInflate
	}
	for {
		last, kind := z.take(1), z.take(2)
		var err error
		switch kind {
		case 0:
			err = z.stored()
		case 1:
			if !z.fixed {
				z.fixed = true
				z.fixedTables()
			}
			err = z.block()
		case 2:
			z.fixed = false
			if err = z.tables(); err == nil {
				err = z.block()
			}
		default:
			err = errInflate
		}
		if err == errLonger && cut {
			return nil
		}
		if err != nil {
			return err
		}
		if z.zeroes > z.n {
			return errInflate // the input has ended before
		}
		if last == 1 {
			break
		}
	}
	if z.at < len(out) {
		return errors.New("it is shorter than it says")
	}
	z.take(z.n & 7)
	sum := z.take(16)<<16 | z.take(16)
	sum = sum&0x00ff00ff<<8 | sum&0xff00ff00>>8
	if z.zeroes > z.n || sum != adler32.Checksum(out) {
		return errInflate
	}
	return nil
}

func (z *inflater) stored() error {
	z.take(z.n & 7)
	size, not := z.take(16), z.take(16)
	if size != ^not&0xffff {
		return errInflate
	}
	for ; size > 0; size-- {
		if z.n < 8 {
			z.refill()
		}
		if z.zeroes >= z.n && z.zeroes > 0 {
			return errInflate
		}
		if z.at == len(z.out) {
			return errLonger
		}
		z.out[z.at] = byte(z.take(8))
		z.at++
	}
	return nil
}

func (z *inflater) fixedTables() {
	lens := z.lens[:maxLit]
	for i := range lens {
		switch {
		case i < 144:
			lens[i] = 8
		case i < 256:
			lens[i] = 9
		case i < 280:
			lens[i] = 7
		default:
			lens[i] = 8
		}
	}
	z.lit.build(lens)
	for i := range maxDist {
		lens[i] = 5
	}
	z.dist.build(lens[:maxDist])
}

func (z *inflater) tables() error {
	lits, dists, codes := int(z.take(5))+257, int(z.take(5))+1, int(z.take(4))+4
	if lits > 286 || dists > 30 {
		return errInflate
	}
	var lens [19]uint8
	for _, i := range lensOrder[:codes] {
		lens[i] = uint8(z.take(3))
	}
	if !z.lit.build(lens[:]) {
		return errInflate
	}
	for i := 0; i < lits+dists; {
		if z.n < maxBits+7 {
			z.refill()
		}
		sym, n := z.lit.symbol(z.bits)
		if n == 0 || z.zeroes > z.n {
			return errInflate
		}
		z.bits >>= n
		z.n -= n
		if sym < 16 {
			z.lens[i] = uint8(sym)
			i++
			continue
		}
		value, times := uint8(0), 0
		switch sym {
		case 16:
			if i == 0 {
				return errInflate
			}
			value, times = z.lens[i-1], 3+int(z.take(2))
		case 17:
			times = 3 + int(z.take(3))
		default:
			times = 11 + int(z.take(7))
		}
		if i+times > lits+dists {
			return errInflate
		}
		for range times {
			z.lens[i] = value
			i++
		}
	}
	if z.lens[256] == 0 || !z.lit.build(z.lens[:lits]) || !z.dist.build(z.lens[lits:lits+dists]) {
		return errInflate
	}
	return nil
}

// block decodes the symbols of a block. Almost all time of the module can be spent in
// here, so that what it works with is not in memory.
func (z *inflater) block() error {
	next, n, at, out, have := z.bits, z.n, z.at, z.out, z.in.have
	for {
		if n >= 48 { // the longest symbol, its bits, and the same of a distance
		} else if len(have) >= 8 {
			next |= binary.LittleEndian.Uint64(have) << n
			taken := (63 - n) >> 3
			have = have[taken:]
			n += taken * 8
		} else {
			z.bits, z.n, z.in.have = next, n, have
			z.refill()
			if next, n, have = z.bits, z.n, z.in.have; z.zeroes > n {
				return errInflate
			}
		}
		var sym int
		var l uint
		if e := z.lit.fast[next&z.lit.mask&(1<<fastBits-1)]; e != 0 {
			sym, l = int(e>>4), uint(e&15)
		} else if sym, l = z.lit.symbol(next); l == 0 {
			return errInflate
		}
		next >>= l
		n -= l
		if sym < 256 {
			if at == len(out) {
				return errLonger
			}
			out[at] = byte(sym)
			at++
			continue
		}
		if sym == 256 {
			z.bits, z.n, z.at, z.in.have = next, n, at, have
			return nil
		}
		if sym -= 257; sym >= len(lengthBase) {
			return errInflate
		}
		l = uint(lengthBits[sym])
		length := int(lengthBase[sym]) + int(next&(1<<l-1))
		next >>= l
		n -= l
		if sym, l = z.dist.symbol(next); l == 0 || sym >= len(distBase) {
			return errInflate
		}
		next >>= l
		n -= l
		l = uint(distBits[sym])
		dist := int(distBase[sym]) + int(next&(1<<l-1))
		next >>= l
		n -= l
		if dist > at {
			return errInflate
		}
		room := len(out) - at
		longer := length > room
		if longer {
			length = room
		}
		if dist >= length {
			copy(out[at:at+length], out[at-dist:])
		} else {
			for i := at; i < at+length; i++ {
				out[i] = out[i-dist]
			}
		}
		if at += length; longer {
			return errLonger
		}
	}
}
