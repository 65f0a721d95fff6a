package wasm

import (
	"fmt"
	"unicode/utf8"
)

// reader reads the fields of one section, or of the list of sections. After its first failure
// every later read returns zero, and the error stays. So callers check err before they use a
// value to allocate, to loop or to index. The parameter what names the field for the error.
type reader struct {
	data []byte       // the whole file, so that offsets need no translation
	pos  int          // offset in data of the next byte
	end  int          // end of the section in data: pos <= end <= len(data)
	err  *FormatError // the first failure

	// text holds data[textAt:end] once a name was read. Names are substrings of text: one
	// allocation for a section instead of one for each name.
	text   string
	textAt int

	numTypes   int   // number of types that a reference type may name
	maxTypeRef int64 // largest index of a type that a reference type has named

	extension string // the last extension that a part belonged to, see [Module.Extension]
}

// extensionOf returns the extension of WebAssembly to which a form of a type belongs; empty:
// unknown.
func extensionOf(form byte) string {
	switch form {
	case 0x4f, 0x50, 0x5e, 0x5f, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x71, 0x72, 0x73:
		return garbageCollection
	case 0x40, byte(Ref), byte(RefNull):
		return functionReferences
	}
	return ""
}

// failUnsupported is failAt for a part of an extension that the host does not run. With an empty
// extension the part is malformed.
func (r *reader) failUnsupported(offset int, extension, format string, args ...any) {
	if r.ok() {
		r.failAt(offset, format, args...)
		r.err.Extension = extension
	}
}

func (r *reader) ok() bool { return r.err == nil }

func (r *reader) failAt(offset int, format string, args ...any) {
	if r.err == nil {
		r.err = &FormatError{Offset: offset, What: fmt.Sprintf(format, args...)}
	}
}

func (r *reader) remaining() int { return r.end - r.pos }

func (r *reader) byte(what string) byte {
	if !r.ok() {
		return 0
	}
	if r.pos >= r.end {
		r.failAt(r.pos, "%s is cut off", what)
		return 0
	}
	b := r.data[r.pos]
	r.pos++
	return b
}

// skip skips n bytes. It fails if fewer remain.
func (r *reader) skip(n uint64, what string) {
	if !r.ok() {
		return
	}
	if n > uint64(r.remaining()) {
		r.failAt(r.pos, "%s has %d bytes, but only %d are left", what, n, r.remaining())
		return
	}
	r.pos += int(n)
}

// unsigned reads an unsigned LEB128 number of at most that many bits. Padding with zeros is legal
// up to the longest form, and linkers use it.
func (r *reader) unsigned(bits int, what string) uint64 {
	start := r.pos
	var v uint64
	for shift := 0; shift < bits; shift += 7 {
		b := r.byte(what)
		if !r.ok() {
			return 0
		}
		if rest := bits - shift; rest < 7 && b>>rest != 0 {
			break // a continuation bit, or value bits that do not fit
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.failAt(start, "%s is not a %d-bit LEB128 number", what, bits)
	return 0
}

func (r *reader) u32(what string) uint32 {
	if r.err == nil && r.pos < r.end && r.data[r.pos] < 0x80 { // nearly always
		r.pos++
		return uint32(r.data[r.pos-1])
	}
	return uint32(r.unsigned(32, what))
}

// index reads an index of one of space items. It fails if the index is out of range.
func (r *reader) index(space int, what string) uint32 {
	start := r.pos
	i := r.u32(what)
	if uint64(i) >= uint64(space) {
		r.failAt(start, "%s %d, but there are %d", what, i, space)
		return 0
	}
	return i
}

// signed33 reads a signed number of 33 bits, the form of a block type.
func (r *reader) signed33(what string) int64 {
	from := r.pos
	r.skipSigned(33, what)
	if !r.ok() {
		return 0
	}
	var v int64
	for i, b := range r.data[from:r.pos] {
		v |= int64(b&0x7f) << (7 * i)
	}
	unused := 64 - 7*(r.pos-from)
	return v << unused >> unused
}

// skipSigned skips a signed LEB128 number of that many bits.
func (r *reader) skipSigned(bits int, what string) {
	start := r.pos
	for shift := 0; shift < bits; shift += 7 {
		b := r.byte(what)
		if !r.ok() {
			return
		}
		if rest := bits - shift; rest < 7 {
			// The unused bits of the last byte repeat the sign bit.
			high := b >> (rest - 1)
			if b < 0x80 && (high == 0 || high == 0x7f>>(rest-1)) {
				return
			}
			break
		}
		if b < 0x80 {
			return
		}
	}
	r.failAt(start, "%s is not a signed %d-bit LEB128 number", what, bits)
}

// AppendSigned appends the shortest signed LEB128 form of v.
func AppendSigned(out []byte, v int64) []byte {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

// count reads the length of a vector. It fails if the length exceeds limit, or if elements of at
// least minBytes each do not fit into the section. So the result is safe to allocate for.
func (r *reader) count(limit, minBytes int, what string) int {
	start := r.pos
	n := r.u32(what)
	if !r.ok() {
		return 0
	}
	if uint64(n) > uint64(limit) {
		r.failAt(start, "%d %s, more than the limit of %d", n, what, limit)
		return 0
	}
	if uint64(n)*uint64(minBytes) > uint64(r.remaining()) {
		r.failAt(start, "%d %s cannot fit into the %d bytes that are left", n, what, r.remaining())
		return 0
	}
	return int(n)
}

// vector reads the elements of a vector until one fails. The numbers are as in count.
func vector[T any](r *reader, limit, minBytes int, what string, read func(*reader) T) []T {
	n := r.count(limit, minBytes, what)
	out := make([]T, 0, n)
	for i := 0; i < n && r.ok(); i++ {
		out = append(out, read(r))
	}
	return out
}

// name reads a name, which is UTF-8 of at most [MaxNameBytes].
func (r *reader) name(what string) string {
	from, to := r.nameSpan(what)
	if !r.ok() {
		return ""
	}
	if r.text == "" {
		r.textAt = from
		r.text = string(r.data[from:r.end])
	}
	return r.text[from-r.textAt : to-r.textAt]
}

// nameSpan reads a name and returns its start and end in data.
func (r *reader) nameSpan(what string) (from, to int) {
	start := r.pos
	n := r.u32("length of " + what)
	if n > MaxNameBytes {
		r.failAt(start, "%s has %d bytes, more than the limit of %d", what, n, MaxNameBytes)
	}
	from = r.pos
	r.skip(uint64(n), what)
	if r.ok() && !utf8.Valid(r.data[from:r.pos]) {
		r.failAt(from, "%s is not valid UTF-8", what)
	}
	return from, r.pos
}

func (r *reader) valType(what string) ValType {
	start := r.pos
	t := ValType(r.byte(what))
	switch t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
	case ExnRef:
		r.extension = exceptions
	case Ref, RefNull:
		r.extension = functionReferences
		r.heapType(what)
	default:
		r.failUnsupported(start, extensionOf(byte(t)), "%s: unsupported value type 0x%02x", what, byte(t))
	}
	return t
}

func (r *reader) refType(what string) ValType {
	start := r.pos
	t := ValType(r.byte(what))
	if t != FuncRef && t != ExternRef && t != ExnRef {
		r.failUnsupported(start, extensionOf(byte(t)), "%s: unsupported reference type 0x%02x", what, byte(t))
	}
	return t
}

// heapType reads the target of a reference type: a type of the module, or one of the abstract
// types, which are negative.
func (r *reader) heapType(what string) {
	start := r.pos
	i := r.signed33(what)
	if i >= int64(r.numTypes) {
		r.failAt(start, "%s: type %d, but there are %d", what, i, r.numTypes)
	}
	r.maxTypeRef = max(r.maxTypeRef, i)
}

func (r *reader) mutability() bool {
	start := r.pos
	b := r.byte("mutability of a global")
	if b > 1 {
		r.failAt(start, "mutability of a global is 0x%02x; it can be 0 or 1", b)
	}
	return b == 1
}

func (r *reader) limits(kind Kind) Limits {
	start := r.pos
	what := "limits of a " + kind.String()
	flags := r.byte(what)
	l := Limits{HasMax: flags&1 != 0, Shared: flags&2 != 0, Is64: flags&4 != 0}
	if l.Is64 {
		r.extension = "64-bit memory (memory64)"
	} else if l.Shared {
		r.extension = threads
	}
	if flags > 7 || l.Shared && (kind != KindMemory || !l.HasMax) {
		r.failAt(start, "%s: unsupported flags 0x%02x", what, flags)
		return l
	}
	bits := 32
	if l.Is64 {
		bits = 64
	}
	l.Min = r.unsigned(bits, what)
	if l.HasMax {
		l.Max = r.unsigned(bits, what)
	}
	if kind == KindMemory {
		most := uint64(1) << 16
		if l.Is64 {
			most = 1 << 48
		}
		if l.Min > most || l.Max > most {
			r.failAt(start, "%s: more than %d pages", what, most)
		}
	}
	if l.HasMax && l.Min > l.Max {
		r.failAt(start, "%s: minimum %d is larger than maximum %d", what, l.Min, l.Max)
	}
	return l
}
