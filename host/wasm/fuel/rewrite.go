package fuel

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/stockade-dev/stockade/host/wasm"
)

// Options holds the settings for instrumenting a module.
type Options struct {
	// MaxDepth limits the depth of nested calls, in units of roughly 16 bytes of the engine's
	// stack. 0: no limit. When it is exceeded, the refill function is called with a value that is
	// not negative, and must not return. With a limit, functions that call others and whose
	// results are typed references are refused.
	MaxDepth int64
	// MaxTableElements limits the number of elements of all tables that the module defines: a
	// module that begins with more is refused. What is left is divided equally among the tables,
	// and table.grow fails beyond. 0: no limit.
	MaxTableElements uint64
	MergeData        bool // merge data segments, unless code names one, see [wasm.MergeDataSegments]
	// MaxSegments limits the number of data and element segments after merging; a module with more
	// is refused. 0: no limit.
	MaxSegments int
	// Inspect is called once with each function before it is instrumented, in any order; an error
	// refuses the module. The body is only valid during the call. Nil: nothing is inspected.
	Inspect func(*wasm.Body) error
}

// ErrReserved is wrapped by the error for a module that uses a reserved name, with which a guest
// could reach its own counter.
var ErrReserved = errors.New("the name is reserved for the host")

// Rewrite returns the module m with code that counts its fuel.
//
// Every index in the functions of m is checked first, so that they cannot reach the additions. The
// engine still has to check the types of operands: inserted code neither reads nor changes the
// operands around it, so that an invalid function stays invalid.
//
// The result has one more import, after the others, so that the indices of functions that m
// defines move up by one. After those of m, it has some more types, one or two globals, exports
// of its state, and perhaps functions and a table. It has no start section, but the export
// [ExportStart] if m had one, and no custom sections.
func Rewrite(m *wasm.Module, opts Options) ([]byte, error) {
	r := &rewriter{m: m, opts: opts, imported: m.ImportedFuncs(), globals: m.Count[wasm.KindGlobal]}
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := r.code(); err != nil {
		return nil, err
	}
	if err := r.data(); err != nil {
		return nil, err
	}
	return r.module()
}

type rewriter struct {
	m    *wasm.Module
	opts Options

	imported, globals int // numbers of imported functions, and of all globals
	help              helpers
	refs              *references
	bodies            []byte // content of the new code section, without the number of functions in front
	merged            []byte // content of the data section after merging; nil: unchanged
	reusable          bool   // the result has the export [ExportReusable]
	namesDataSegment  bool   // an instruction, maybe in dead code, names a data segment
}

func (r *rewriter) check() error {
	for _, i := range r.m.Imports {
		if i.Module == ImportModule {
			return fmt.Errorf("import %.80q.%.80q: %w", i.Module, i.Name, ErrReserved)
		}
		if i.Limits.Is64 {
			return fmt.Errorf("import %.80q.%.80q: 64-bit %s are not supported", i.Module, i.Name, pluralNames[i.Kind])
		}
	}
	for _, e := range r.m.Exports {
		if reserved(e.Name) {
			return fmt.Errorf("export %.80q: %w", e.Name, ErrReserved)
		}
	}
	for _, l := range r.m.Memories {
		if l.Is64 {
			return errors.New("64-bit memories are not supported")
		}
	}
	for _, t := range r.m.Tables {
		if t.Limits.Is64 {
			return errors.New("64-bit tables are not supported")
		}
	}
	return nil
}

var pluralNames = map[wasm.Kind]string{wasm.KindTable: "tables", wasm.KindMemory: "memories"}

// data merges data segments, if MergeData is set and no code names one. Each costs the engine
// time whenever the module is loaded or instantiated. More than MaxSegments are an error.
func (r *rewriter) data() error {
	n := r.m.NumDataSegments
	if r.opts.MergeData && !r.namesDataSegment {
		most := cmp.Or(r.opts.MaxSegments, math.MaxInt) - r.m.NumElementSegments
		if payload, merged, ok := wasm.MergeDataSegments(r.m, most); ok {
			r.merged, n = payload, merged
		}
	}
	if n += r.m.NumElementSegments; r.opts.MaxSegments > 0 && n > r.opts.MaxSegments {
		return fmt.Errorf("%d data and element segments, more than the limit of %d", n, r.opts.MaxSegments)
	}
	return nil
}

// maxGrowth limits the growth of the code, as a factor: about three times the growth of any
// compiler's output. A memory.fill in three bytes becomes fifty. A module that exceeds it by more
// than 1 MiB is refused.
const maxGrowth = 4

// maxHelpers limits the number of helpers of a module; with more it is refused. Most need three.
const maxHelpers = 500

// maxShortBody limits the size in bytes of a function that may go without a check.
const maxShortBody = 4 * maxLeaf

func (r *rewriter) inspect(b *wasm.Body) error {
	if r.opts.Inspect == nil {
		return nil
	}
	return r.opts.Inspect(b)
}

// findUnchecked sets f.unchecked for the small functions that can return without a check, and
// returns for each function whether it checks late.
func (r *rewriter) findUnchecked(f *flow) (late []bool, err error) {
	f.unchecked, late = make([]bool, len(r.m.Funcs)), make([]bool, len(r.m.Funcs))
	bodies := r.m.Bodies()
	bodies.MaxBytes = maxShortBody
	for i := range late {
		b, ok := bodies.Next()
		if !ok {
			return nil, bodies.Err()
		}
		if len(b.Instrs) == 0 {
			continue // too long
		}
		if err := r.inspect(b); err != nil {
			return nil, err
		}
		f.analyze(b, true)
		late[i] = f.canCheckLate()
		f.unchecked[i] = late[i] || f.isLeaf()
	}
	return late, nil
}

func (r *rewriter) code() error {
	m := r.m
	refill := uint32(r.imported)
	r.help = helpers{
		first: refill + 1 + uint32(len(m.Funcs)), refill: refill, counter: uint32(r.globals), elemType: r.elemType,
		types: m.Types[:len(m.Types):len(m.Types)], originalTypes: len(m.Types), index: map[helperKey]uint32{}, addedTypes: map[string]uint32{},
	}
	r.help.typeIndex([]wasm.ValType{wasm.I64}, []wasm.ValType{wasm.I64}) // of refill, the first added type
	r.refs = newReferences(m, r.newFuncIndex)
	e := emitter{
		imported: refill, refill: refill, counter: uint32(r.globals), depth: uint32(r.globals) + 1, limitsDepth: r.opts.MaxDepth > 0,
		help: &r.help, refs: r.refs,
	}
	f := flow{imported: refill, hostInTable: r.hostInTable()}
	var t tree
	late, err := r.findUnchecked(&f)
	if err != nil {
		return err
	}
	r.bodies = make([]byte, 0, len(m.Raw)+len(m.Raw)/4+1024)
	var body []byte
	before := 0 // bytes of all original bodies so far
	r.reusable = unrestorableState(r.m) == ""
	bodies := m.Bodies()
	for i := range m.Funcs {
		b, ok := bodies.Next()
		if !ok {
			return bodies.Err()
		}
		if len(b.Code) > maxShortBody {
			if err := r.inspect(b); err != nil {
				return err
			}
		}
		f.analyze(b, late[i])
		r.reusable = r.reusable && !f.changesHiddenState
		r.namesDataSegment = r.namesDataSegment || f.namesDataSegment
		f.blocks[0].check = !f.unchecked[i] && (e.limitsDepth && f.hasCalls || !f.checksFirst(b))
		t.placeCharges(&f)
		results := m.Types[m.Funcs[i]].Results
		if e.limitsDepth && f.hasCalls {
			for _, v := range results {
				if v == wasm.Ref || v == wasm.RefNull {
					return fmt.Errorf("function %d: typed references are not supported", b.Func)
				}
			}
		}
		body = e.function(body[:0], b, &f, results)
		r.bodies = binary.AppendUvarint(r.bodies, uint64(len(body)))
		r.bodies = append(r.bodies, body...)
		if before += len(b.Code); len(r.bodies) > maxGrowth*before+1<<20 {
			return fmt.Errorf("function %d: with the code that counts, the module is more than %d times as large", b.Func, maxGrowth)
		}
		if len(r.help.bodies) > maxHelpers {
			return fmt.Errorf("more than %d different instructions on tables, segments and memory", maxHelpers)
		}
	}
	if err := bodies.Err(); err != nil {
		return err
	}
	for _, body := range r.help.bodies {
		r.bodies = binary.AppendUvarint(r.bodies, uint64(len(body)))
		r.bodies = append(r.bodies, body...)
	}
	return nil
}

// hostInTable reports whether a table may hold an imported function: only if a part of the module
// outside of functions names one. An export counts, too, which costs more and does no harm.
func (r *rewriter) hostInTable() bool {
	for _, at := range r.m.FuncRefs {
		if index, _ := binary.Uvarint(r.m.Raw[at:]); index < uint64(r.imported) {
			return true
		}
	}
	return false
}

// elemType returns the type of the elements of a table, by the index of the table.
func (r *rewriter) elemType(table uint32) wasm.ValType {
	for _, i := range r.m.Imports {
		if i.Kind == wasm.KindTable {
			if table == 0 {
				return i.ValType
			}
			table--
		}
	}
	return r.m.Tables[table].Elem
}

// module assembles the sections of the result.
func (r *rewriter) module() ([]byte, error) {
	m := r.m
	from := map[byte]wasm.Section{}
	for _, s := range m.Sections {
		from[s.ID] = s
	}
	out := make([]byte, 0, len(m.Raw)+len(r.bodies)/4+1024)
	out = append(out, m.Raw[:8]...)
	for _, id := range sectionOrder {
		s, ok := from[id]
		var added []byte
		n := 0
		switch id {
		case wasm.SectionType:
			for _, t := range r.help.types[r.help.originalTypes:] {
				added = appendTypes(appendTypes(append(added, 0x60), t.Params), t.Results)
				n++
			}
		case wasm.SectionImport:
			added = appendName(appendName(nil, ImportModule), ImportRefill)
			added = append(added, byte(wasm.KindFunc))
			added = binary.AppendUvarint(added, uint64(r.help.originalTypes))
			n = 1
		case wasm.SectionFunction:
			for _, t := range r.help.typeOf {
				added = binary.AppendUvarint(added, uint64(t))
				n++
			}
		case wasm.SectionTable:
			added, n = r.refs.tables()
			if ok && r.opts.MaxTableElements > 0 {
				tables, err := cappedTables(m.Tables, r.opts.MaxTableElements)
				if err != nil {
					return nil, err
				}
				out = appendSection(out, id, binary.AppendUvarint(nil, uint64(len(m.Tables)+n)), tables, added)
				continue
			}
		case wasm.SectionElement:
			added, n = r.refs.segments()
		case wasm.SectionGlobal:
			added = append(added, byte(wasm.I64), 1, byte(wasm.OpI64Const), 0, byte(wasm.OpEnd))
			n = 1
			if r.opts.MaxDepth > 0 {
				added = append(added, byte(wasm.I64), 1)
				added = append(appendI64Const(added, r.opts.MaxDepth), byte(wasm.OpEnd))
				n++
			}
		case wasm.SectionExport:
			global := func(name string, index int) {
				added = binary.AppendUvarint(append(appendName(added, name), byte(wasm.KindGlobal)), uint64(index))
				n++
			}
			global(ExportFuel, r.globals)
			if r.opts.MaxDepth > 0 {
				global(ExportDepth, r.globals+1)
			}
			if r.reusable {
				global(ExportReusable, r.globals)
				for i, g := range m.MutableGlobals {
					global(ExportGlobal(i), int(g.Index))
				}
			}
			if m.HasStart {
				added = append(appendName(added, ExportStart), byte(wasm.KindFunc))
				added = binary.AppendUvarint(added, uint64(r.newFuncIndex(m.Start)))
				n++
			}
		case wasm.SectionCode:
			if funcs := len(m.Funcs) + len(r.help.bodies); funcs > 0 {
				out = appendSection(out, id, binary.AppendUvarint(nil, uint64(funcs)), r.bodies)
			}
			continue
		}
		if !ok && n == 0 {
			continue
		}
		if r.merged != nil && id == wasm.SectionDataCount {
			continue // it is for code that names segments
		}
		if r.merged != nil && id == wasm.SectionData {
			out = appendSection(out, id, r.merged)
			continue
		}
		out = r.section(out, id, s, n, added)
	}
	return out, nil
}

// sectionOrder is the order of sections in the result.
var sectionOrder = []byte{
	wasm.SectionType, wasm.SectionImport, wasm.SectionFunction, wasm.SectionTable, wasm.SectionMemory, wasm.SectionTag,
	wasm.SectionGlobal, wasm.SectionExport, wasm.SectionElement, wasm.SectionDataCount, wasm.SectionCode, wasm.SectionData,
}

// section appends a section of the result: the entries of s, with the function indices among them
// adjusted, and n added entries.
func (r *rewriter) section(out []byte, id byte, s wasm.Section, n int, added []byte) []byte {
	if n == 0 && !r.hasFuncRefs(s) {
		return append(out, r.m.Raw[s.Offset:s.End()]...)
	}
	entries, skip := uint64(0), 0
	if len(s.Payload) > 0 {
		entries, skip = binary.Uvarint(s.Payload)
	}
	payload := make([]byte, 0, len(s.Payload)+len(added)+len(s.Payload)/8+16)
	at := s.PayloadOffset + skip
	for _, ref := range r.m.FuncRefs {
		pos := int(ref)
		if pos < at || pos >= s.End() {
			continue
		}
		payload = append(payload, r.m.Raw[at:pos]...)
		index, size := binary.Uvarint(r.m.Raw[pos:])
		payload = binary.AppendUvarint(payload, uint64(r.newFuncIndex(uint32(index))))
		at = pos + size
	}
	payload = append(payload, r.m.Raw[at:s.End()]...)
	return appendSection(out, id, binary.AppendUvarint(nil, entries+uint64(n)), payload, added)
}

func (r *rewriter) hasFuncRefs(s wasm.Section) bool {
	for _, ref := range r.m.FuncRefs {
		if int(ref) >= s.PayloadOffset && int(ref) < s.End() {
			return true
		}
	}
	return false
}

// newFuncIndex returns the index in the result of a function of the module.
func (r *rewriter) newFuncIndex(index uint32) uint32 {
	if int64(index) >= int64(r.imported) {
		return index + 1
	}
	return index
}

// cappedTables returns the entries of the table section with new maximums. The maximum of each
// table is its minimum and an equal share of the elements of most that no minimum needs, but at
// most its old maximum. It returns an error if the minimums need more than most. The engine has no
// limit of its own.
func cappedTables(tables []wasm.Table, most uint64) ([]byte, error) {
	spare := min(most, math.MaxUint32)
	for _, t := range tables {
		if t.Limits.Min > spare {
			return nil, fmt.Errorf("the tables start with more than %d elements", most)
		}
		spare -= t.Limits.Min
	}
	var out []byte
	for _, t := range tables {
		limit := t.Limits.Min + spare/uint64(len(tables))
		if t.Limits.HasMax {
			limit = min(limit, t.Limits.Max)
		}
		out = append(out, byte(t.Elem), 1) // 1: a maximum follows
		out = binary.AppendUvarint(out, t.Limits.Min)
		out = binary.AppendUvarint(out, limit)
	}
	return out, nil
}

func appendSection(out []byte, id byte, parts ...[]byte) []byte {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	out = binary.AppendUvarint(append(out, id), uint64(size))
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func appendName(out []byte, name string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(name))), name...)
}

func appendTypes(out []byte, types []wasm.ValType) []byte {
	out = binary.AppendUvarint(out, uint64(len(types)))
	for _, t := range types {
		out = append(out, byte(t))
	}
	return out
}

// frameCost returns the cost of a call of the function in the depth: the estimated size of its
// frame in the engine's stack, and its consumption without a check after its calls.
func frameCost(b *wasm.Body, f *flow) int64 {
	frame := 4 + int64(b.Params+b.Locals)/2 + int64(len(b.Code))/256
	tail := f.longest.tail
	if f.catchesExceptions {
		tail = maxTail
	}
	return frame + int64(tail)/2
}
