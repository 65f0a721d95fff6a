package wasm

import (
	"bytes"
	"errors"
	"fmt"
)

// Limits of DecodeComponent, in addition to those of modules; it refuses what exceeds them. A
// component composed of others has a few hundred sections and nests three levels deep.
const (
	MaxComponentSections = 1 << 14 // sections in all levels together, without those in core modules
	MaxComponentNesting  = 16      // levels of components below the outermost
)

// ExternKind is the kind of an import or an export of a component.
type ExternKind byte

// The kinds, with the values of their bytes in the binary format.
const (
	ExternModule    ExternKind = 0
	ExternFunc      ExternKind = 1
	ExternValue     ExternKind = 2
	ExternType      ExternKind = 3
	ExternComponent ExternKind = 4
	ExternInstance  ExternKind = 5 // an instance of an interface
)

var externNames = [...]string{"core module", "function", "value", "type", "component", "interface"}

func (k ExternKind) String() string { return externNames[k] }

// Extern is an import or export of a component. Its name is that of an interface, such as
// "wasi:cli/run@0.2.0", or a plain one.
type Extern struct {
	Name string
	Kind ExternKind
}

// Component is the result of DecodeComponent. DecodeComponent does not change it afterwards.
type Component struct {
	Raw              []byte   // the file
	Imports, Exports []Extern // imports and exports of the outermost component
	Modules          [][]byte // undecoded core modules on every level, in file order; they alias the input
	Components       int      // number of nested components, on every level
	Customs          []Custom // custom sections of the outermost level
}

// The section ids of components that the decoder knows by name; componentLast is the largest.
const (
	componentCustom    byte = 0
	componentModule    byte = 1
	componentComponent byte = 4
	componentImport    byte = 10
	componentExport    byte = 11
	componentLast      byte = 12
)

// DecodeComponent walks the sections of a component of the component model, the format of
// programs for WASI 0.2 and later. It collects the names of the imports and exports, and the
// core modules; it does not read types, instructions, or the content of core modules. Its
// errors are those of [Decode]; a core module is an error of its own.
//
// It reads each byte at most once, except headers of nested sections. It allocates at most 32
// bytes for each byte of data, and 4 MiB besides.
func DecodeComponent(data []byte) (*Component, error) {
	switch err := checkHeader(data); {
	case err == nil:
		return nil, errors.New("a core module, not a component")
	case !errors.Is(err, ErrComponent):
		return nil, err
	case !bytes.Equal(data[len(magic):headerBytes], componentVersion):
		return nil, fmt.Errorf("%w: % x, of a component", ErrVersion, data[len(magic):headerBytes])
	}
	d := componentDecoder{c: &Component{Raw: data}}
	r := &reader{data: data, pos: headerBytes, end: len(data)}
	d.sections(r, 0)
	if !r.ok() {
		return nil, r.err
	}
	return d.c, nil
}

type componentDecoder struct {
	c           *Component
	numSections int
}

// sections walks the sections of a component at a level of nesting; 0 is the outermost.
func (d *componentDecoder) sections(r *reader, level int) {
	for r.ok() && r.remaining() > 0 {
		offset := r.pos
		id := r.byte("section id")
		if id > componentLast {
			r.failAt(offset, "unknown section id %d", id)
			return
		}
		if d.numSections++; d.numSections > MaxComponentSections {
			r.failAt(offset, "more than %d sections", MaxComponentSections)
			return
		}
		size := r.u32("size of a section")
		from := r.pos
		r.skip(uint64(size), "section of a component")
		if !r.ok() {
			return
		}
		s := &reader{data: r.data, pos: from, end: r.pos}
		d.section(id, offset, s, level)
		r.err = s.err
	}
}

func (d *componentDecoder) section(id byte, offset int, r *reader, level int) {
	switch {
	case id == componentModule:
		from := r.pos
		if d.nestedHeader(r, version1, "core module"); r.ok() {
			d.c.Modules = append(d.c.Modules, r.data[from:r.end:r.end])
		}
		return
	case id == componentComponent:
		d.c.Components++
		if level == MaxComponentNesting {
			r.failAt(offset, "components nest deeper than %d levels", MaxComponentNesting)
			return
		}
		if d.nestedHeader(r, componentVersion, "component"); r.ok() {
			d.sections(r, level+1)
		}
		return
	case level > 0: // imports and exports of nested components are not those of the whole
		return
	case id == componentCustom:
		if from, to := r.nameSpan("name of a custom section"); r.ok() {
			d.c.Customs = append(d.c.Customs, Custom{Name: string(r.data[from:to]), Offset: offset, Data: r.data[r.pos:r.end:r.end]})
		}
		return
	case id == componentImport:
		d.c.Imports = append(d.c.Imports, vector(r, MaxImports-len(d.c.Imports), 4, "imports", func(r *reader) Extern {
			name := externName(r, "name of an import")
			return Extern{name, externDesc(r)}
		})...)
	case id == componentExport:
		d.c.Exports = append(d.c.Exports, vector(r, MaxExports-len(d.c.Exports), 5, "exports", func(r *reader) Extern {
			name := externName(r, "name of an export")
			e := Extern{name, externSort(r)}
			r.u32("index of an export")
			if r.byte("type of an export") != 0 {
				externDesc(r)
			}
			return e
		})...)
	default:
		return
	}
	if r.ok() && r.remaining() > 0 {
		r.failAt(r.pos, "section %d of a component has %d bytes too many", id, r.remaining())
	}
}

func (*componentDecoder) nestedHeader(r *reader, version []byte, what string) {
	from := r.pos
	r.skip(uint64(headerBytes), "header of a nested "+what)
	if r.ok() && (!bytes.HasPrefix(r.data[from:], magic) || !bytes.Equal(r.data[from+len(magic):r.pos], version)) {
		r.failAt(from, "a nested %s has the wrong header", what)
	}
}

// externName reads a name and skips the options that its newest form has.
func externName(r *reader, what string) string {
	start := r.pos
	form := r.byte(what)
	if form > 2 {
		r.failAt(start, "%s has the unknown form 0x%02x", what, form)
	}
	name := r.name(what)
	if form == 2 {
		for n := r.count(MaxParams, 2, "options of a name"); n > 0 && r.ok(); n-- {
			r.byte("option of a name")
			r.nameSpan("option of a name")
		}
	}
	return name
}

// externDesc reads the kind of an import or export, and skips its type.
func externDesc(r *reader) ExternKind {
	start := r.pos
	const what = "type of an import or export"
	kind := ExternKind(r.byte(what))
	bound := byte(0)
	switch kind {
	case ExternModule:
		if r.byte(what) != sortModule {
			r.failAt(start, "%s: unknown core kind", what)
		}
	case ExternValue, ExternType:
		if bound = r.byte(what); bound > 1 {
			r.failAt(start, "%s: unknown bound 0x%02x", what, bound)
		}
	case ExternFunc, ExternComponent, ExternInstance:
	default:
		r.failAt(start, "%s: unknown kind 0x%02x", what, byte(kind))
		return 0
	}
	switch {
	case kind == ExternType && bound == 1: // a resource, which has no type
	case kind == ExternValue && bound == 1:
		r.skipSigned(33, what)
	default:
		r.u32(what)
	}
	return kind
}

const sortModule = 0x11 // kind of a core module, among the kinds of core items

func externSort(r *reader) ExternKind {
	start := r.pos
	kind := ExternKind(r.byte("kind of an export"))
	switch {
	case kind > ExternInstance:
		r.failAt(start, "export with the unknown kind 0x%02x", byte(kind))
		return 0
	case kind == ExternModule && r.byte("kind of an export") != sortModule:
		r.failAt(start, "export of a core item that is no module")
	}
	return kind
}

// LargestModule returns the largest core module of a component, and its shape: most components
// are one core module and small ones that connect it. The module is nil if there is none, or if
// the largest does not decode.
func (c *Component) LargestModule() (*Module, Shape) {
	var largest []byte
	for _, m := range c.Modules {
		if len(m) > len(largest) {
			largest = m
		}
	}
	m, err := Decode(largest)
	if err != nil {
		return nil, Shape{}
	}
	return m, Classify(m)
}
