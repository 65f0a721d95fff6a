package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/host/git/ignore"
)

// attributes holds the attributes of a path that matter here, see gitattributes(5). A program
// that an attribute such as filter or diff names is never run.
type attributes struct {
	text     string // state of text: set, unset, auto or another value; "": unspecified
	eol      string // state of eol: lf, crlf or another value; "": unspecified
	binary   bool   // diff is unset: the file counts as binary
	filter   string // attribute by which git converts the content, such as filter=NAME or ident; "": none
	textDiff bool   // diff is set: the file counts as text, whatever its content
}

// attributeRule is a line of an attributes file.
type attributeRule struct {
	pattern  ignore.Pattern
	settings []string // such as -text or eol=lf
}

// attributeFile holds the rules of one directory.
type attributeFile struct {
	depth  int // number of names in the directory's path
	rules  []attributeRule
	parent *attributeFile // rules of the nearest directory above with rules; nil: none
}

// maxAttributeBytes limits an attributes file, in bytes; the rest is ignored.
const maxAttributeBytes = 1 << 20

// attributesOf returns the attributes of a path. It reads .gitattributes files of the worktree
// when needed. The rules of info/attributes are applied last, since they have precedence.
func (c *call) attributesOf(path string) attributes {
	if c.attrs == nil {
		c.attrs = map[string]*attributeFile{}
		c.infoAttrs = parseAttributes(readAttributes(filepath.Join(c.CommonDir, "info", "attributes")))
	}
	names := strings.Split(path, "/")
	var out attributes
	f := c.attributesIn(strings.Join(names[:len(names)-1], "/"))
	var levels []*attributeFile
	for ; f != nil; f = f.parent {
		levels = append(levels, f)
	}
	for i := len(levels) - 1; i >= 0; i-- {
		out.apply(levels[i].rules, names[levels[i].depth:])
	}
	out.apply(c.infoAttrs, names)
	return out
}

func (a *attributes) apply(rules []attributeRule, names []string) {
	for i := range rules {
		if !rules[i].pattern.Match(names, false) {
			continue
		}
		for _, s := range rules[i].settings {
			a.set(s)
		}
	}
}

// set applies one setting, such as -text or eol=lf.
func (a *attributes) set(s string) {
	name, value, _ := strings.Cut(s, "=")
	state := "set"
	switch {
	case value != "":
		state = value
	case strings.HasPrefix(name, "-"):
		name, state = name[1:], "unset"
	case strings.HasPrefix(name, "!"):
		name, state = name[1:], ""
	}
	switch name {
	case "text":
		a.text = state
	case "crlf": // older name of text
		a.text = map[string]string{"set": "set", "unset": "unset", "input": "set"}[state]
	case "eol":
		a.eol = state
	case "diff":
		a.binary, a.textDiff = state == "unset", state == "set"
	case "binary":
		if state == "set" {
			a.text, a.binary, a.textDiff = "unset", true, false
		}
	case "filter":
		a.filter = ""
		if state != "unset" && state != "" {
			a.filter = "filter=" + state
		}
	case "ident", "working-tree-encoding":
		if state != "unset" && state != "" {
			a.filter = name
		}
	}
}

// attributesIn returns the rules of dir, or of the nearest directory above with rules; nil:
// none.
func (c *call) attributesIn(dir string) *attributeFile {
	if f, ok := c.attrs[dir]; ok {
		return f
	}
	var parent *attributeFile
	depth := 0
	if dir != "" {
		up := ""
		if i := strings.LastIndexByte(dir, '/'); i >= 0 {
			up = dir[:i]
		}
		parent = c.attributesIn(up)
		depth = strings.Count(dir, "/") + 1
	}
	f := parent
	if c.Worktree != "" {
		if rules := parseAttributes(readAttributes(filepath.Join(c.Worktree, filepath.FromSlash(dir), ".gitattributes"))); len(rules) > 0 {
			f = &attributeFile{depth, rules, parent}
		}
	}
	c.attrs[dir] = f
	return f
}

func readAttributes(name string) []byte {
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxAttributeBytes))
	return text
}

func parseAttributes(text []byte) (rules []attributeRule) {
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.HasPrefix(fields[0], "#") || strings.HasPrefix(fields[0], `"`) || strings.HasPrefix(fields[0], "[attr]") || strings.HasPrefix(fields[0], "!") {
			continue
		}
		if p, ok := ignore.ParseLine(fields[0]); ok {
			rules = append(rules, attributeRule{p, fields[1:]})
		}
	}
	return rules
}
