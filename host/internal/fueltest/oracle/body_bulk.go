package oracle

// bulkMemory generates an instruction on the whole memory or on a data segment.
func (b *body) bulkMemory() {
	s := b.src
	kind := s.n(8)
	if len(b.datas) > 0 && kind == 7 {
		if s.chance(30) {
			b.countData = true
			b.emit(opDataDrop, uint32(s.n(len(b.datas))))
		}
		return
	}
	if b.memory == nil {
		b.op(opNop)
		return
	}
	switch {
	case kind == 0:
		b.op(opMemorySize)
		b.byte(0)
		b.push(i32t)
	case kind == 1:
		b.memoryGrow()
	case !b.canAccessMemory():
		b.op(opNop)
	case kind <= 3:
		b.address()
		b.value(i32t)
		b.length()
		b.pop(3)
		b.op(opMemFill)
		b.byte(0)
	case kind <= 5 || len(b.datas) == 0:
		b.address()
		b.address()
		b.length()
		b.pop(3)
		b.op(opMemCopy)
		b.byte(0, 0)
	default:
		b.countData = true
		i := s.n(len(b.datas))
		size := 0
		// The engine does not drop active segments when it should, so nothing is copied
		// from them.
		if d := b.datas[i]; d.flags == 1 {
			size = len(d.bytes)
		}
		b.address()
		b.segmentRange(size)
		b.pop(3)
		b.emit(opMemInit, uint32(i))
		b.byte(0)
	}
}

// length generates a number of bytes as an operand.
func (b *body) length() {
	switch {
	case b.src.chance(b.risk):
		b.value(i32t)
	case b.src.chance(15):
		b.pushConst(b.src.n(3))
	default:
		b.pushMasked(pick[int32](b.src, 0xf, 0xff, 0xfff))
	}
}

// segmentRange generates an offset and a length within size, in bytes or elements;
// sometimes the length is one too large.
func (b *body) segmentRange(size int) {
	from := b.src.n(size + 1)
	n := b.src.n(size - from + 1)
	if size > 0 && b.src.chance(b.risk) {
		n = size - from + 1
	}
	b.pushConst(from)
	b.pushConst(n)
}

// memoryGrow generates a memory.grow by a few pages or none. A memory without a maximum
// stops at eight pages, so that loops do not exhaust the memory of the host.
func (b *body) memoryGrow() {
	switch {
	case b.memory.HasMax && b.src.chance(30):
		b.value(i32t)
	case b.memory.HasMax:
		b.pushMasked(1)
	default:
		b.pushMasked(1)
		b.constI32(-1)
		b.op(opMemorySize)
		b.byte(0)
		b.constI32(8)
		b.op(0x49) // i32.lt_u
		b.op(opSelect)
	}
	b.op(opMemoryGrow) // i32 to i32
	b.byte(0)
}

// findTable chooses a table with elements of a type; false if there is none.
func (b *body) findTable(t valType) (uint32, bool) {
	types := make([]valType, len(b.tables))
	for i, table := range b.tables {
		types[i] = table.Elem
	}
	return b.pickOfType(types, t)
}

// tableStatement generates an instruction on a table or on an element segment.
func (b *body) tableStatement() {
	s := b.src
	kind := s.n(16)
	if kind == 15 && len(b.elems) > 0 {
		b.emit(opElemDrop, uint32(s.n(len(b.elems))))
		return
	}
	if len(b.tables) == 0 {
		b.op(opNop)
		return
	}
	i := uint32(s.n(len(b.tables)))
	t := b.tables[i]
	size := int(t.Limits.Min)
	switch {
	case kind <= 1:
		b.emit(opTableSize, i)
		b.push(i32t)
	case kind <= 4:
		b.tableGet(i)
	case kind <= 6:
		if b.tableIndex(i) {
			b.value(t.Elem)
			b.pop(2)
			b.emit(opTableSet, i)
		}
	case kind <= 8:
		b.tableGrow(i)
	case kind <= 9:
		from := s.n(size + 1)
		b.pushConst(from)
		b.value(t.Elem)
		b.pushConst(s.n(size-from+1) + int(bit(s.chance(b.risk)))*100)
		b.pop(3)
		b.emit(opTableFill, i)
	case kind <= 12:
		j, _ := b.findTable(t.Elem)
		n := s.n(min(size, int(b.tables[j].Limits.Min)) + 1)
		b.pushConst(s.n(size - n + 1))
		b.pushConst(s.n(int(b.tables[j].Limits.Min)-n+1) + int(bit(s.chance(b.risk))))
		b.pushConst(n)
		b.pop(3)
		b.emit(opTableCopy, i, j)
	default:
		b.tableInit(i)
	}
}

// tableIndex generates the index of an entry, mostly of an existing one; false if that is
// impossible.
func (b *body) tableIndex(table uint32) bool {
	size := int(b.tables[table].Limits.Min)
	switch {
	case b.src.chance(b.risk):
		b.value(i32t)
	case size == 0:
		return false
	case size >= 4 && b.src.chance(50):
		b.pushMasked(3)
	default:
		b.pushConst(b.src.n(size))
	}
	return true
}

func (b *body) tableGet(table uint32) bool {
	if !b.tableIndex(table) {
		return false
	}
	b.pop(1)
	b.emit(opTableGet, table)
	b.push(b.tables[table].Elem)
	return true
}

func (b *body) tableGrow(table uint32) {
	t := b.tables[table]
	b.value(t.Elem)
	if t.Limits.HasMax && b.src.chance(30) {
		b.value(i32t)
	} else { // a table without a maximum grows by any number
		b.pushMasked(7)
	}
	b.pop(2)
	b.emit(opTableGrow, table)
	b.push(i32t)
}

func (b *body) tableInit(table uint32) {
	t := b.tables[table]
	var fit []uint32
	for i, e := range b.elems {
		if e.typ == t.Elem {
			fit = append(fit, uint32(i))
		}
	}
	if len(fit) == 0 {
		b.op(opNop)
		return
	}
	i := fit[b.src.n(len(fit))]
	size := 0
	// Active and declarative segments are empty when code runs. The engine also takes
	// segments of externref for empty.
	if e := b.elems[i]; e.typ == fref && (e.flags == 1 || e.flags == 5) {
		size = min(len(e.funcs), int(t.Limits.Min))
	}
	b.pushConst(b.src.n(int(t.Limits.Min) - size + 1))
	b.segmentRange(size)
	b.pop(3)
	b.emit(opTableInit, i, table)
}
