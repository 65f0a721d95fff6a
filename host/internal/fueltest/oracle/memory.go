package oracle

import (
	"encoding/binary"
	"slices"

	"github.com/stockade-dev/stockade/host/wasm"
)

// access executes a load or a store of a number.
func (m *machine) access(in *instr) {
	if in.op >= 0x36 {
		m.store(in)
	} else {
		m.top().lo = m.load(in.op, m.top().lo+in.lo)
	}
}

func (m *machine) load(op uint32, at uint64) uint64 {
	switch op {
	case 0x28, 0x2a, 0x35: // i32.load, f32.load, i64.load32_u
		return m.read(at, 4)
	case 0x29, 0x2b: // i64.load, f64.load
		return m.read(at, 8)
	case 0x2c: // i32.load8_s
		return uint64(uint32(int8(m.read(at, 1))))
	case 0x2d, 0x31: // i32.load8_u, i64.load8_u
		return m.read(at, 1)
	case 0x2e: // i32.load16_s
		return uint64(uint32(int16(m.read(at, 2))))
	case 0x2f, 0x33: // i32.load16_u, i64.load16_u
		return m.read(at, 2)
	case 0x30: // i64.load8_s
		return uint64(int8(m.read(at, 1)))
	case 0x32: // i64.load16_s
		return uint64(int16(m.read(at, 2)))
	}
	return uint64(int32(m.read(at, 4))) // i64.load32_s
}

func (m *machine) store(in *instr) {
	v := m.pop().lo
	at := m.pop().lo + in.lo
	switch in.op {
	case 0x36, 0x38, 0x3e: // i32.store, f32.store, i64.store32
		m.write(at, 4, v)
	case 0x37, 0x39: // i64.store, f64.store
		m.write(at, 8, v)
	case 0x3a, 0x3c: // i32.store8, i64.store8
		m.write(at, 1, v)
	case 0x3b, 0x3d: // i32.store16, i64.store16
		m.write(at, 2, v)
	}
}

// read reads an unsigned number of n bytes.
func (m *machine) read(at, n uint64) uint64 {
	var b [8]byte
	copy(b[:], m.memorySlice(at, n))
	return binary.LittleEndian.Uint64(b[:])
}

func (m *machine) write(at, n, v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	copy(m.memorySlice(at, n), b[:n])
}

func (m *machine) memoryGrow() {
	delta := m.pop32()
	old := uint32(len(m.memory) / wasm.PageBytes)
	refused := uint64(old)+uint64(delta) > uint64(m.pages)
	m.out.Bulk = append(m.out.Bulk, BulkOp{Op: opMemoryGrow, N: delta, Refused: refused})
	if refused {
		m.push32(^uint32(0))
		return
	}
	m.memory = append(m.memory, make([]byte, int(delta)*wasm.PageBytes)...)
	m.push32(old)
}

// bulk executes the instructions on tables, and the prefixed ones on memory and segments.
func (m *machine) bulk(in *instr) {
	switch in.op {
	case opTableGet:
		*m.top() = m.tables[in.a].slots(uint32(m.top().lo), 1)[0]
		return
	case opTableSet:
		v := m.pop()
		m.tables[in.a].slots(m.pop32(), 1)[0] = v
		return
	case opTableSize:
		m.push32(uint32(len(m.tables[in.a].refs)))
		return
	case opDataDrop:
		m.datas[in.a].bytes = nil
		return
	case opElemDrop:
		m.elems[in.a].refs = nil
		return
	}

	n := m.pop32()
	if m.bulkTotal += uint64(n); m.bulkTotal > m.opts.MaxBulk {
		panic(LimitBulk)
	}
	m.out.Bulk = append(m.out.Bulk, BulkOp{Op: in.op, N: n, Trapped: true}) // unless it ends below
	now := &m.out.Bulk[len(m.out.Bulk)-1]
	if in.op == opTableGrow {
		t, v := &m.tables[in.a], m.pop()
		old := uint32(len(t.refs))
		// The engine reserves the largest length.
		if most := min(t.most, ^uint32(0)-1); uint64(old)+uint64(n) > uint64(most) {
			now.Refused = true
			m.push32(^uint32(0))
		} else {
			t.refs = append(t.refs, slices.Repeat([]slot{v}, int(n))...)
			m.push32(old)
		}
		now.Trapped = false
		return
	}
	from := m.pop()
	to := m.pop32()
	switch src := uint32(from.lo); in.op {
	case opMemInit:
		copySegment(m.memorySlice(uint64(to), uint64(n)), m.datas[in.a].bytes, src, TrapMemory)
	case opMemCopy:
		source := m.memorySlice(uint64(src), uint64(n))
		copy(m.memorySlice(uint64(to), uint64(n)), source)
	case opMemFill:
		area := m.memorySlice(uint64(to), uint64(n))
		for i := range area {
			area[i] = byte(src)
		}
	case opTableInit:
		copySegment(m.tables[in.b].slots(to, n), m.elems[in.a].refs, src, TrapTable)
	case opTableCopy:
		source := m.tables[in.b].slots(src, n)
		copy(m.tables[in.a].slots(to, n), source)
	case opTableFill:
		area := m.tables[in.a].slots(to, n)
		for i := range area {
			area[i] = from
		}
	}
	now.Trapped = false
}

// copySegment fills dst from a segment, beginning at an offset, or traps.
func copySegment[T any](dst, segment []T, from uint32, trap Trap) {
	if uint64(from)+uint64(len(dst)) > uint64(len(segment)) {
		panic(trap)
	}
	copy(dst, segment[from:])
}
