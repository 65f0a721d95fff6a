package wasm

import (
	"cmp"
	"strings"
)

// ManifestSection is the name of the custom section with the manifest of a tool module.
const ManifestSection = "stockade-tool"

// ownSectionPrefix begins the names of custom sections that have a meaning for this host. Decode
// refuses two sections with the same such name: the section that was signed or shown to a
// person must be the one that is read.
const ownSectionPrefix = "stockade-"

// Decode walks the sections of a core module. It returns an error that wraps [ErrNotWasm],
// [ErrComponent], [ErrVersion] or [ErrTooLarge] if the header is not that of a core module or
// data is too large, and a [*FormatError] if the rest breaks the format or a limit, or uses an
// extension that is not read.
//
// It allocates at most 32 bytes for each byte of data, and 384 KiB besides (for the list of
// sections). Real modules need far less than their own size. The Module aliases data.
func Decode(data []byte) (*Module, error) {
	if err := checkHeader(data); err != nil {
		return nil, err
	}
	d := decoder{m: &Module{Raw: data}}
	if err := d.sections(data); err != nil {
		return nil, err
	}
	return d.m, nil
}

type decoder struct {
	m         *Module
	codeSeen  bool
	dataCount uint32
}

// sectionRank is the position of each section, by its id, in a module. It differs from the id
// because the data count and tag sections were invented later.
var sectionRank = [...]int{
	SectionType: 1, SectionImport: 2, SectionFunction: 3, SectionTable: 4, SectionMemory: 5, SectionTag: 6, SectionGlobal: 7,
	SectionExport: 8, SectionStart: 9, SectionElement: 10, SectionDataCount: 11, SectionCode: 12, SectionData: 13,
}

var sectionNames = [...]string{
	"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data", "data count", "tag",
}

func (d *decoder) sections(data []byte) error {
	r := reader{data: data, pos: headerBytes, end: len(data)}
	last := 0
	for r.ok() && r.remaining() > 0 {
		offset := r.pos
		id := r.byte("section id")
		if int(id) >= len(sectionNames) {
			r.failAt(offset, "unknown section id %d", id)
			break
		}
		if len(d.m.Sections) == MaxSections {
			r.failAt(offset, "more than %d sections", MaxSections)
			break
		}
		if id != SectionCustom {
			if sectionRank[id] <= last {
				r.failAt(offset, "%s section is repeated or out of order", sectionNames[id])
				break
			}
			last = sectionRank[id]
		}
		size := r.u32("size of the " + sectionNames[id] + " section")
		from := r.pos
		r.skip(uint64(size), sectionNames[id]+" section")
		if !r.ok() {
			break
		}
		d.m.Sections = append(d.m.Sections, Section{ID: id, Offset: offset, PayloadOffset: from, Payload: data[from:r.pos:r.pos]})
		s := reader{data: data, pos: from, end: r.pos, numTypes: len(d.m.Types)}
		d.section(id, offset, &s)
		if s.ok() && s.remaining() > 0 {
			s.failAt(s.pos, "%s section has %d bytes too many", sectionNames[id], s.remaining())
		}
		r.err = s.err
		d.m.Extension = cmp.Or(d.m.Extension, s.extension)
	}
	if r.ok() {
		d.checkWhole(&r)
	}
	if !r.ok() {
		return r.err // returned only here: a nil *FormatError must not become an error
	}
	return nil
}

func (d *decoder) section(id byte, offset int, r *reader) {
	switch id {
	case SectionCustom:
		d.custom(offset, r)
	case SectionType:
		d.types(r)
	case SectionImport:
		d.imports(r)
	case SectionFunction:
		d.m.Funcs = vector(r, MaxFuncs, 1, "functions", d.typeIndex)
		d.m.Count[KindFunc] += len(d.m.Funcs)
	case SectionTable:
		d.m.Tables = vector(r, MaxTables, 3, "tables", func(r *reader) Table {
			elem := r.refType("table")
			return Table{Elem: elem, Limits: r.limits(KindTable)}
		})
		d.m.Count[KindTable] += len(d.m.Tables)
	case SectionMemory:
		d.m.Memories = vector(r, MaxMemories, 2, "memories", func(r *reader) Limits { return r.limits(KindMemory) })
		d.m.Count[KindMemory] += len(d.m.Memories)
	case SectionTag:
		d.m.Tags = vector(r, MaxTags, 2, "tags", d.tag)
		d.m.Count[KindTag] += len(d.m.Tags)
	case SectionGlobal:
		d.globalSection(r)
	case SectionExport:
		d.exports(r)
	case SectionStart:
		d.start(r)
	case SectionElement:
		d.elements(r)
	case SectionDataCount:
		d.m.HasDataCount = true
		d.dataCount = r.u32("data count")
	case SectionCode:
		d.code(r)
	case SectionData:
		d.data(r)
	}
}

// checkWhole checks rules that involve several sections.
func (d *decoder) checkWhole(r *reader) {
	if d.m.Count[KindMemory] > 1 {
		d.m.Extension = "several memories (multi-memory)"
	}
	if !d.codeSeen && len(d.m.Funcs) > 0 {
		r.failAt(r.pos, "%d functions, but no code section", len(d.m.Funcs))
	}
	if d.m.HasDataCount && d.dataCount != uint32(d.m.NumDataSegments) {
		r.failAt(r.pos, "data count says %d, but there are %d data segments", d.dataCount, d.m.NumDataSegments)
	}
}

func (d *decoder) custom(offset int, r *reader) {
	from, to := r.nameSpan("name of a custom section")
	if !r.ok() {
		return
	}
	name := string(r.data[from:to])
	if strings.HasPrefix(name, ownSectionPrefix) {
		if _, ok := CustomSection(d.m, name); ok {
			r.failAt(offset, "second custom section %q", name)
			return
		}
	}
	d.m.Customs = append(d.m.Customs, Custom{Name: name, Offset: offset, Data: r.data[r.pos:r.end:r.end]})
	r.pos = r.end
}

func (d *decoder) types(r *reader) {
	n := r.count(MaxTypes, 2, "types")
	d.m.Types = make([]FuncType, 0, n)
	// All value types of the section go into one array, whose size is bounded by that of
	// the section: a type of one byte becomes one byte.
	arena := make([]ValType, 0, r.remaining())
	list := func(what string) []ValType {
		k := r.count(MaxParams, 1, what)
		from := len(arena)
		for range k {
			arena = append(arena, r.valType(what))
		}
		return arena[from:len(arena):len(arena)]
	}
	r.numTypes, r.maxTypeRef = MaxTypes, -1 // types may refer to later types
	for i := 0; i < n && r.ok(); i++ {
		group := 1
		if r.remaining() > 0 && r.data[r.pos] == 0x4e { // a group of types that refer to each other
			r.extension = garbageCollection
			r.pos++
			group = r.count(MaxTypes-len(d.m.Types), 2, "types of a group")
		}
		for ; group > 0 && r.ok(); group-- {
			start := r.pos
			if form := r.byte("type"); form != 0x60 {
				r.failUnsupported(start, extensionOf(form), "type %d has the unsupported form 0x%02x; only function types are known", len(d.m.Types), form)
			}
			t := FuncType{Params: list("parameters")}
			t.Results = list("results")
			d.m.Types = append(d.m.Types, t)
		}
	}
	if r.maxTypeRef >= int64(len(d.m.Types)) {
		r.failAt(r.pos, "a type names type %d, but there are %d", r.maxTypeRef, len(d.m.Types))
	}
}

func (d *decoder) typeIndex(r *reader) uint32 {
	start := r.pos
	i := r.u32("type index")
	if uint64(i) >= uint64(len(d.m.Types)) {
		r.failAt(start, "type index %d, but there are %d types", i, len(d.m.Types))
	}
	return i
}

func (d *decoder) imports(r *reader) {
	n := r.count(MaxImports, 4, "imports")
	d.m.Imports = make([]Import, 0, n)
	for i := 0; i < n && r.ok(); i++ {
		imp := Import{Module: r.name("module name of an import"), Name: r.name("name of an import")}
		start := r.pos
		imp.Kind = Kind(r.byte("kind of an import"))
		switch imp.Kind {
		case KindFunc:
			imp.Type = d.typeIndex(r)
		case KindTable:
			imp.ValType = r.refType("imported table")
			imp.Limits = r.limits(KindTable)
		case KindMemory:
			imp.Limits = r.limits(KindMemory)
		case KindGlobal:
			imp.ValType = r.valType("imported global")
			imp.Mutable = r.mutability()
		case KindTag:
			imp.Type = d.tag(r)
		default:
			r.failAt(start, "import %d has the unsupported kind 0x%02x", i, byte(imp.Kind))
			return
		}
		d.m.Count[imp.Kind]++
		d.m.Imports = append(d.m.Imports, imp)
	}
}

func (d *decoder) tag(r *reader) uint32 {
	r.extension = exceptions
	start := r.pos
	if attribute := r.byte("tag"); attribute != 0 {
		r.failAt(start, "tag with the unknown attribute 0x%02x", attribute)
	}
	return d.typeIndex(r)
}

func (d *decoder) globalSection(r *reader) {
	n := r.count(MaxGlobals, 3, "globals")
	for i := 0; i < n && r.ok(); i++ {
		t := r.valType("global")
		if r.mutability() {
			d.m.MutableGlobals = append(d.m.MutableGlobals, Global{uint32(d.m.Count[KindGlobal]), t})
		}
		d.skipConstExpr(r, "initial value of a global")
		d.m.Count[KindGlobal]++ // later globals can use it
		d.m.NumGlobals++
	}
}

func (d *decoder) exports(r *reader) {
	n := r.count(MaxExports, 3, "exports")
	d.m.Exports = make([]Export, 0, n)
	seen := make(map[string]struct{}) // grows with the exports read, not with the promised number
	for i := 0; i < n && r.ok(); i++ {
		start := r.pos
		e := Export{Name: r.name("name of an export"), Kind: Kind(r.byte("kind of an export"))}
		at := r.pos
		e.Index = r.u32("index of an export")
		if !r.ok() {
			return
		}
		if _, ok := seen[e.Name]; ok {
			r.failAt(start, "two exports are named %.80q", e.Name)
			return
		}
		seen[e.Name] = struct{}{}
		if e.Kind > KindTag {
			r.failAt(start, "export %.80q has the unsupported kind 0x%02x", e.Name, byte(e.Kind))
			return
		}
		if e.Kind == KindFunc {
			d.m.FuncRefs = append(d.m.FuncRefs, uint32(at))
		}
		if n := d.m.Count[e.Kind]; uint64(e.Index) >= uint64(n) {
			r.failAt(start, "export %.80q is %s %d, but there are %d", e.Name, e.Kind, e.Index, n)
			return
		}
		d.m.Exports = append(d.m.Exports, e)
	}
}

func (d *decoder) start(r *reader) {
	start := r.pos
	d.m.HasStart = true
	d.m.Start = r.u32("start function")
	t, ok := d.m.FuncType(d.m.Start)
	if !ok {
		r.failAt(start, "start function %d, but there are %d functions", d.m.Start, d.m.Count[KindFunc])
	} else if len(t.Params)+len(t.Results) > 0 {
		r.failAt(start, "start function has the signature %s; it can have neither parameters nor results", t)
	}
}

func (d *decoder) elements(r *reader) {
	n := r.count(MaxSegments, 3, "element segments")
	for i := 0; i < n && r.ok(); i++ {
		start := r.pos
		flags := r.u32("element segment")
		if flags > 7 {
			r.failAt(start, "element segment %d has unsupported flags %d", i, flags)
			return
		}
		passive, explicit, exprs := flags&1 != 0, flags&2 != 0, flags&4 != 0
		if !passive {
			table := uint32(0)
			if explicit {
				table = r.u32("table of an element segment")
			}
			if tables := d.m.Count[KindTable]; uint64(table) >= uint64(tables) {
				r.failAt(start, "element segment %d fills table %d, but there are %d", i, table, tables)
			}
			d.skipConstExpr(r, "offset of an element segment")
		}
		if passive || explicit {
			at := r.pos
			if exprs {
				r.refType("element segment")
			} else if kind := r.byte("element segment"); kind != 0 {
				r.failAt(at, "element segment %d has the unsupported kind 0x%02x", i, kind)
			}
		}
		at := r.pos
		k := r.count(MaxElements, 1, "elements")
		if d.m.NumElements += k; d.m.NumElements > MaxElements {
			r.failAt(at, "more than %d elements in all segments", MaxElements)
		}
		for j := 0; j < k && r.ok(); j++ {
			if exprs {
				d.skipConstExpr(r, "element")
				continue
			}
			d.funcRef(r)
		}
	}
	d.m.NumElementSegments = n
}

func (d *decoder) code(r *reader) {
	d.codeSeen = true
	start := r.pos
	n := r.count(MaxFuncs, 3, "function bodies")
	if r.ok() && n != len(d.m.Funcs) {
		r.failAt(start, "%d function bodies for %d functions", n, len(d.m.Funcs))
	}
	for i := 0; i < n && r.ok(); i++ {
		at := r.pos
		size := r.u32("size of a function body")
		r.skip(uint64(size), "function body")
		if r.ok() && (size < 2 || r.data[r.pos-1] != 0x0b) {
			r.failAt(at, "function body %d does not end with an end instruction", i)
		}
		d.m.LargestBody = max(d.m.LargestBody, int(size))
	}
}

func (d *decoder) data(r *reader) {
	n := r.count(MaxSegments, 2, "data segments")
	for i := 0; i < n && r.ok(); i++ {
		start := r.pos
		flags := r.u32("data segment")
		if flags > 2 {
			r.failAt(start, "data segment %d has unsupported flags %d", i, flags)
			return
		}
		if flags != 1 { // active
			memory := uint32(0)
			if flags == 2 {
				memory = r.u32("memory of a data segment")
			}
			if memories := d.m.Count[KindMemory]; uint64(memory) >= uint64(memories) {
				r.failAt(start, "data segment %d fills memory %d, but there are %d", i, memory, memories)
			}
			d.skipConstExpr(r, "offset of a data segment")
		}
		r.skip(uint64(r.u32("length of a data segment")), "data segment")
	}
	d.m.NumDataSegments = n
}

// funcRef reads the index of a function and records its position in Module.FuncRefs.
func (d *decoder) funcRef(r *reader) {
	if len(d.m.FuncRefs) >= MaxFuncRefs {
		r.failAt(r.pos, "more than %d references to functions outside of functions", MaxFuncRefs)
		return
	}
	d.m.FuncRefs = append(d.m.FuncRefs, uint32(r.pos))
	r.index(d.m.Count[KindFunc], "function")
}

func (d *decoder) skipConstExpr(r *reader, what string) {
	for r.ok() {
		start := r.pos
		switch op := r.byte(what); op {
		case 0x0b: // end
			return
		case 0x23: // global.get
			if imported := d.m.Count[KindGlobal] - d.m.NumGlobals; int(r.index(d.m.Count[KindGlobal], "global")) >= imported {
				r.extension = extendedConstants
			}
		case 0xd2: // ref.func
			d.funcRef(r)
		case 0x41: // i32.const
			r.skipSigned(32, what)
		case 0x42: // i64.const
			r.skipSigned(64, what)
		case 0x43: // f32.const
			r.skip(4, what)
		case 0x44: // f64.const
			r.skip(8, what)
		case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e: // add, sub and mul
			r.extension = extendedConstants
		case 0xd0: // ref.null
			r.refType(what)
		case 0xfd:
			if sub := r.u32(what); sub != 12 { // v128.const
				r.failAt(start, "%s: instruction 0xfd %d is not constant", what, sub)
			}
			r.skip(16, what)
		default:
			r.failUnsupported(start, Op(op).extension(), "%s: instruction 0x%02x is not constant", what, op)
		}
	}
}
