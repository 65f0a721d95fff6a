package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTheDoorNeedsOnlyPublicPackages holds the list of public packages in host/doc.go to what a
// program that embeds us needs: the packages that the exported declarations of door mention, and
// those that its example imports.
func TestTheDoorNeedsOnlyPublicPackages(t *testing.T) {
	doc, err := parser.ParseFile(token.NewFileSet(), root+"/host/doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	var public []string
	for _, row := range rows(doc.Doc.Text(), "Public packages") {
		name, _, _ := strings.Cut(row, " ")
		public = append(public, "host/"+name)
	}
	needed := map[string]string{"host/door": "it is the door"}
	sources, err := filepath.Glob(root + "/host/door/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no source of door: %v", err)
	}
	for _, name := range sources {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Base(name)
		imports := map[string]string{} // by the name in the file
		for _, spec := range f.Imports {
			if p, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); ok {
				imports[path.Base(p)] = p
				if base == "example_test.go" {
					needed[p] = base
				}
			}
		}
		if strings.HasSuffix(base, "_test.go") {
			continue
		}
		for _, what := range exported(f) {
			ast.Inspect(what, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.StructType:
					n.Fields.List = slices.DeleteFunc(n.Fields.List, func(f *ast.Field) bool { return len(f.Names) > 0 && !f.Names[0].IsExported() })
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
						needed[imports[x.Name]] = base
					}
				}
				return true
			})
		}
	}
	for name, why := range needed {
		if !slices.Contains(public, name) {
			t.Errorf("%s is not in the list of public packages in host/doc.go, and %s needs it", name, why)
		}
	}
	for _, name := range public {
		if _, err := os.Stat(root + "/" + name); err != nil || table[name] == nil {
			t.Errorf("host/doc.go lists %s as public, which is not there", name)
		}
		if needed[name] == "" {
			t.Errorf("host/doc.go lists %s as public, and nothing of door needs it", name)
		}
	}
}

// exported lists the types in the exported declarations of a file.
func exported(f *ast.File) (out []ast.Node) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				out = append(out, d.Type)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						out = append(out, s.Type)
					}
				case *ast.ValueSpec:
					if s.Names[0].IsExported() && s.Type != nil {
						out = append(out, s.Type)
					}
				}
			}
		}
	}
	return out
}
