package repo

import (
	"encoding/binary"
	"errors"
	"hash/adler32"
	"math/bits"
)

// This file is our own decoder of zlib's format (RFC 1950 and 1951). The size of an object is
// known, so it is decoded in place, without a window, and the tables are rebuilt in place. In
// WebAssembly this takes a third of the time of compress/zlib for the small objects of a
// history. Tests compare its output with that of compress/zlib.

var (
	errInflate = errors.New("the compressed data is damaged")
	errLonger  = errors.New("it is longer than it says")
)

// inflater decodes one object at a time. It is used again because its tables are large.
type inflater struct {
	in          *reader
	bits        uint64                   // bits that were read and not used yet, the next one lowest
	n           uint                     // number of these bits
	out         []byte                   // decoded data
	at          int                      // number of bytes written to out
	ended       bool                     // set at the end of the input
	lit         *huffman                 // literals and lengths of the current block
	dist        *huffman                 // distances of the current block
	dynamic     [2]huffman               // lit and dist of blocks with their own tables
	fixed       [2]huffman               // lit and dist of the other blocks; built when first needed
	codes       [maxLit + maxDist]uint16 // scratch space for build
	paddingBits uint                     // number of zero bits that were added behind the end of the input
}

const (
	maxLit   = 288 // symbols of lit
	maxDist  = 32  // symbols of dist
	maxBits  = 15  // bits of a code
	fastBits = 9   // bits of a code that fast holds
)

// huffman decodes symbols: codes of up to fastBits bits by a table, longer ones bit by bit. An entry
// of a table is symbol<<4 | number of bits.
type huffman struct {
	fast  [1 << fastBits]uint16 // entries, by the next bits of the input; 0: the code is longer or unknown
	mask  uint64                // mask of the bits to look up: those of the longest code, at most fastBits
	count [maxBits + 1]uint16   // number of codes, by their bits
	codes [maxLit]uint16        // all entries, sorted by their number of bits
}

// build makes the tables from entries that are sorted by symbol. It returns false if their lengths
// form no complete code, unless there is no entry, or only one of one bit.
func (h *huffman) build(codes []uint16) bool {
	h.count = [maxBits + 1]uint16{}
	for _, c := range codes {
		h.count[c&maxBits]++
	}
	left, longest := 1, 0
	var offset [maxBits + 2]uint16
	for l := 1; l <= maxBits; l++ {
		left = left<<1 - int(h.count[l])
		if left < 0 {
			return false
		}
		if h.count[l] > 0 {
			longest = l
		}
		offset[l+1] = offset[l] + h.count[l]
	}
	if left > 0 && (len(codes) > 1 || len(codes) == 1 && h.count[1] != 1) {
		return false
	}
	for _, c := range codes {
		l := c & maxBits
		h.codes[offset[l]] = c
		offset[l]++
	}
	// For each length of codes, the table so far is doubled, and the codes of this length, with
	// their bits reversed, are written over it. This is cheaper than filling each place.
	size, at := 1, 0
	h.fast[0] = 0
	next := 0
	for l := 1; l <= min(longest, fastBits); l++ {
		copy(h.fast[size:2*size], h.fast[:size])
		size *= 2
		for range h.count[l] {
			h.fast[next] = h.codes[at]
			at++
			if next == size-1 {
				break // all places are filled
			}
			bit := 1 << (bits.Len(uint(next^(size-1))) - 1)
			next = next&(bit-1) | bit
		}
	}
	h.mask = uint64(size - 1)
	return true
}

// refill reads until there are at least 48 bits. Bits behind the end of the input are zero.
func (z *inflater) refill() {
	for z.n <= 56 {
		if len(z.in.have) == 0 && (z.ended || z.in.fill() != nil) {
			z.ended = true
			z.paddingBits += 8
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

// takeBits returns the next n bits, at most 16.
func (z *inflater) takeBits(n uint) uint32 {
	if z.n < n {
		z.refill()
	}
	v := uint32(z.bits) & (1<<n - 1)
	z.bits >>= n
	z.n -= n
	return v
}

// symbol returns the first symbol in some bits, and the number of its bits; n 0: none.
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
			return int(h.codes[index+code-first] >> 4), l
		}
		index += count
		first = (first + count) << 1
		code <<= 1
	}
	return 0, 0
}

// Tables of RFC 1951: the base and the number of extra bits of each length and distance.
var (
	lengthBase = [...]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthBits = [...]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distBase   = [...]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	distBits   = [...]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
	lensOrder  = [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15} // order in which the head of a block gives the lengths of the codes for lengths
)

// inflate fills out with the decoded data. Data of another size is an error, unless cut is
// set: then more data is ignored.
func (z *inflater) inflate(in *reader, out []byte, cut bool) error {
	z.in, z.bits, z.n, z.ended, z.paddingBits = in, 0, 0, false, 0
	z.out, z.at = out, 0
	head := z.takeBits(16)
	if head&0x0f != 8 || head>>4&0x0f > 7 || (head&0xff<<8|head>>8)%31 != 0 || head>>8&0x20 != 0 {
		return errInflate
	}
	for {
		last, kind := z.takeBits(1), z.takeBits(2)
		var err error
		switch kind {
		case 0:
			err = z.stored()
		case 1:
			z.fixedTables()
			err = z.block()
		case 2:
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
		if z.paddingBits > z.n {
			return errInflate // the input has ended before
		}
		if last == 1 {
			break
		}
	}
	if z.at < len(out) {
		return errors.New("it is shorter than it says")
	}
	z.takeBits(z.n & 7)
	sum := z.takeBits(16)<<16 | z.takeBits(16)
	sum = sum&0x00ff00ff<<8 | sum&0xff00ff00>>8
	if z.paddingBits > z.n || sum != adler32.Checksum(out) {
		return errInflate
	}
	return nil
}

func (z *inflater) stored() error {
	z.takeBits(z.n & 7)
	size, not := z.takeBits(16), z.takeBits(16)
	if size != ^not&0xffff {
		return errInflate
	}
	for ; size > 0; size-- {
		if z.n < 8 {
			z.refill()
		}
		if z.paddingBits >= z.n && z.paddingBits > 0 {
			return errInflate
		}
		if z.at == len(z.out) {
			return errLonger
		}
		z.out[z.at] = byte(z.takeBits(8))
		z.at++
	}
	return nil
}

func (z *inflater) fixedTables() {
	z.lit, z.dist = &z.fixed[0], &z.fixed[1]
	if z.lit.mask > 0 {
		return
	}
	for i := range maxLit {
		l := 8
		if 144 <= i && i < 256 {
			l = 9
		} else if 256 <= i && i < 280 {
			l = 7
		}
		z.codes[i] = uint16(i<<4 | l)
	}
	z.lit.build(z.codes[:maxLit])
	for i := range maxDist {
		z.codes[i] = uint16(i<<4 | 5)
	}
	z.dist.build(z.codes[:maxDist])
}

func (z *inflater) tables() error {
	lits, dists, codes := int(z.takeBits(5))+257, int(z.takeBits(5))+1, int(z.takeBits(4))+4
	if lits > 286 || dists > 30 {
		return errInflate
	}
	var lens [19]uint8
	for _, i := range lensOrder[:codes] {
		lens[i] = uint8(z.takeBits(3))
	}
	n := 0
	for i, l := range lens {
		if l > 0 {
			z.codes[n] = uint16(i<<4) | uint16(l)
			n++
		}
	}
	z.lit, z.dist = &z.dynamic[0], &z.dynamic[1]
	if !z.lit.build(z.codes[:n]) {
		return errInflate
	}
	// The code lengths of lit and dist form one sequence. Symbols of length 0 are left out.
	k, last, all := 0, uint16(0), lits+dists
	next, have, lit := z.bits, z.n, z.lit
	for i := 0; i < all; {
		if have < maxBits+7 {
			z.bits, z.n = next, have
			z.refill()
			if next, have = z.bits, z.n; z.paddingBits > have {
				return errInflate
			}
		}
		e := lit.fast[next&lit.mask&(1<<fastBits-1)]
		if e == 0 {
			return errInflate
		}
		l := uint(e & maxBits)
		next >>= l
		have -= l
		sym := e >> 4
		if sym < 16 {
			if last = sym; sym > 0 {
				z.codes[k] = uint16(i<<4) | sym
				k++
			}
			i++
			continue
		}
		least, more := 3, uint(2)
		if sym == 17 {
			last, more = 0, 3
		} else if sym == 18 {
			last, least, more = 0, 11, 7
		} else if i == 0 {
			return errInflate
		}
		end := i + least + int(next&(1<<more-1))
		next >>= more
		have -= more
		if end > all {
			return errInflate
		}
		if last > 0 {
			for ; i < end; i++ {
				z.codes[k] = uint16(i<<4) | last
				k++
			}
		}
		i = end
	}
	z.bits, z.n = next, have
	n, hasEnd := k, false
	for n > 0 && int(z.codes[n-1]>>4) >= lits {
		n--
		z.codes[n] -= uint16(lits << 4)
	}
	for i := n; i > 0 && z.codes[i-1]>>4 >= 256; i-- {
		hasEnd = z.codes[i-1]>>4 == 256
	}
	if !hasEnd || !z.lit.build(z.codes[:n]) || !z.dist.build(z.codes[n:k]) {
		return errInflate
	}
	return nil
}

// block decodes the symbols of a block. The module can spend almost all of its time here,
// so the state is in local variables and not in memory.
func (z *inflater) block() error {
	next, n, at, out, have, lit := z.bits, z.n, z.at, z.out, z.in.have, z.lit
	mask := lit.mask
	for {
		if n >= 48 { // enough for the longest length and distance with their extra bits
		} else if len(have) >= 8 {
			next |= binary.LittleEndian.Uint64(have) << n
			taken := (63 - n) >> 3
			have = have[taken:]
			n += taken * 8
		} else {
			z.bits, z.n, z.in.have = next, n, have
			z.refill()
			if next, n, have = z.bits, z.n, z.in.have; z.paddingBits > n {
				return errInflate
			}
		}
		e := lit.fast[next&mask&(1<<fastBits-1)]
		const end, several = 256 << 4, 5
		if at+several <= len(out) { // there are enough bits for this many literals
			for k := 0; k < several && e-1 < end-1; k++ {
				out[at] = byte(e >> 4)
				at++
				l := uint(e & maxBits)
				next >>= l
				n -= l
				e = lit.fast[next&mask&(1<<fastBits-1)]
			}
			if n < 48 {
				continue
			}
		}
		sym, l := int(e>>4), uint(e&maxBits)
		if e == 0 {
			if sym, l = lit.symbol(next); l == 0 {
				return errInflate
			}
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
