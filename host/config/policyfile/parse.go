package policyfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/config/keys"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/tool"
)

// Limits on a file; more is an error.
const (
	// Each regular expression costs memory, and time in every call, and a stranger may have
	// written a project's file.
	maxPatterns = 100
	maxCAFiles  = 64 // certificate authorities in network.ca_files; as in agent.toml
)

// parse checks the text of a policy file, and returns its layer and warnings. path is for
// messages. Doubtful entries are errors, and so is an empty file. A rule that allows is an
// error in an administrator's file, and is left out of a project's with a warning: these files
// answer no questions.
func parse(path string, source policy.Source, data []byte) (policy.Layer, []string, error) {
	file, err := fileKeys.Parse(path, data, nil)
	if err != nil {
		return policy.Layer{}, nil, err
	}
	if len(file.Settings) == 0 {
		return policy.Layer{}, nil, &keys.Error{Path: path, Message: "it is empty, probably by mistake; remove the file, or write require_confirmation = false"}
	}
	r := &reader{file: file, layer: policy.Layer{Source: source, Path: path}, validTools: map[string]bool{}, filledArgs: map[string]bool{}}
	for _, s := range file.Settings {
		r.read(setting{s, r.from(strings.Join(s.Path, "."))})
	}
	r.finish()
	if err := file.Err(); err != nil {
		return policy.Layer{}, nil, err
	}
	return r.layer, r.warnings, nil
}

// reader makes a layer from the settings of a file, one after the other. finish handles
// settings that depend on others.
type reader struct {
	file     *keys.File
	layer    policy.Layer
	warnings []string
	patterns int // number of regular expressions so far

	proxyResolves *setting        // network.proxy_resolves
	auditRequired bool            // the value of audit.required
	export        *setting        // audit.export
	denyOthers    *setting        // tools."*".allow, if it is false
	allowedTools  []string        // tools with allow = true
	validTools    map[string]bool // name of a tool → whether it is valid
	args          []setting       // the tables of arguments
	filledArgs    map[string]bool // the tables of arguments that have at least one key
	rules         []rule
}

// rule is one entry of the list rules in the file.
type rule struct {
	policy.Rule
	setting         setting
	effect          string
	match, notMatch []string
}

func (r *reader) fail(s setting, err error) {
	if err != nil {
		r.file.Fail(s.Setting, err)
	}
}

func (r *reader) from(key string) policy.Provenance {
	return policy.Provenance{Source: r.layer.Source, Origin: r.layer.Path + ": " + key}
}

func (r *reader) read(s setting) {
	if s.Path[0] == "tools" && !r.checkTool(s) {
		return
	}
	switch {
	case s.Key >= 0:
		table[s.Key].apply(r, s)
	case s.Path[0] == "rules":
		r.rules = append(r.rules, rule{setting: s, Rule: policy.Rule{Source: r.layer.Source, Origin: r.layer.Path}})
	}
}

// checkTool checks the name of the tool in a key tools.NAME, and reports whether it is valid.
func (r *reader) checkTool(s setting) bool {
	if len(s.Path) < 2 {
		return true
	}
	name := s.Path[1]
	good, before := r.validTools[name]
	if !before {
		good = name == policy.AnyTool || tool.ValidName(name)
		r.validTools[name] = good
		if !good {
			r.fail(s, fmt.Errorf("%.80q is not the name of a tool", name))
		}
	}
	switch argument := strings.Join(s.Path[:min(4, len(s.Path))], "."); {
	case s.Key >= 0:
		r.filledArgs[argument] = true
	case len(s.Path) == 4:
		r.args = append(r.args, s)
	}
	return good
}

// finish handles the settings that depend on others.
func (r *reader) finish() {
	c := &r.layer.Ceiling
	if s := r.proxyResolves; s != nil {
		if r.layer.Route.Proxy == nil {
			r.fail(*s, errors.New("it is about network.proxy, which is not set"))
		} else {
			r.layer.Route.Proxy.Resolves = s.bool()
		}
	}
	where := ""
	if r.export != nil {
		where = r.export.text()
	}
	switch {
	case r.auditRequired:
		c.AuditExports = []policy.Setting{{Value: where, From: r.from("audit")}}
	case where != "":
		r.fail(*r.export, errors.New("it has no effect without audit.required = true; set that, too"))
	}
	if s := r.denyOthers; s != nil {
		rule := r.denial(*s)
		rule.Except = sorted(r.allowedTools)
		r.add(*s, rule)
	}
	for _, s := range r.args {
		if !r.filledArgs[strings.Join(s.Path, ".")] {
			r.fail(s, errors.New("it says nothing of the argument: pattern, one_of, maximum, under or hosts"))
		}
	}
	for i := range r.rules {
		r.addRule(&r.rules[i])
	}
	// Narrow brings it into the order and form of every other ceiling.
	*c = policy.Narrow(*c, *c)
}

func (r *reader) hide(s setting) {
	for _, name := range s.texts() {
		if strings.ContainsAny(name, `[]{}?\`) {
			r.warnings = append(r.warnings, fmt.Sprintf("%s: files.hidden: %q is not a pattern: it means only the path with exactly this name", r.layer.Path, name))
		}
		r.layer.Ceiling.Hidden = append(r.layer.Ceiling.Hidden, policy.Setting{Value: name, From: s.from})
	}
}

// requireAdmin reports whether the file is the administrator's. In another file it reports the
// setting, which is about the network, as a mistake. Whoever sets a proxy or an authority can
// read the traffic, so a project has no say in it; a user's own settings belong into
// agent.toml.
func (r *reader) requireAdmin(s setting) bool {
	if r.layer.Source != policy.SourceAdmin {
		r.fail(s, fmt.Errorf("only the administrator can set it for others; your own is %s in your agent.toml", s))
	}
	return r.layer.Source == policy.SourceAdmin
}

func (r *reader) proxy(s setting) {
	r.layer.Route.Proxy = &policy.Proxy{URL: s.text(), From: s.from}
	if r.requireAdmin(s) && s.text() == "" {
		r.fail(s, errors.New("it is empty; leave it out to let everybody choose"))
	}
}

func (r *reader) authorities(s setting) {
	if n := len(s.texts()); r.requireAdmin(s) && (n == 0 || n > maxCAFiles) {
		r.fail(s, fmt.Errorf("it names %d files; name 1 to %d, or leave it out", n, maxCAFiles))
	}
	for _, name := range s.texts() {
		r.layer.Route.CAFiles = append(r.layer.Route.CAFiles, policy.Setting{Value: name, From: s.from})
	}
}

// modules returns the file's only list of modules, and adds it to the ceiling if needed.
func (r *reader) modules() *policy.ModuleList {
	c := &r.layer.Ceiling
	if c.Modules == nil {
		c.Modules = []policy.ModuleList{{From: r.from("modules")}}
	}
	return &c.Modules[0]
}

func (r *reader) limit(s setting) {
	limit := policy.Limit{From: s.from}
	switch v := s.Value.(type) {
	case int:
		limit.Value = int64(v)
	case time.Duration:
		limit.Value, limit.Text = int64(v), keys.FormatDuration(v)
	}
	if r.layer.Ceiling.Limits == nil {
		r.layer.Ceiling.Limits = map[string]policy.Limit{}
	}
	r.layer.Ceiling.Limits[strings.Join(s.Path[1:], ".")] = limit
}

func (r *reader) allow(s setting) {
	switch name := s.Path[1]; {
	case !s.bool() && name == policy.AnyTool:
		r.denyOthers = &s // finish adds the rule, with the allowed tools as exceptions
	case !s.bool():
		r.add(s, r.denial(s))
	case name != policy.AnyTool:
		r.allowedTools = append(r.allowedTools, name)
	}
}

// denial returns a rule for a setting of a single tool; each such setting denies calls.
func (r *reader) denial(s setting) policy.Rule {
	return policy.Rule{Effect: policy.Deny, Tool: s.Path[1], Source: r.layer.Source, Origin: s.from.Origin}
}

// denyUnless adds a rule that denies calls whose argument matches none of the values.
func (r *reader) denyUnless(s setting, kind match.Kind, values ...string) {
	rule := r.denial(s)
	if len(values) == 0 { // an empty list: no value fits
		kind, values = match.OneOf, []string{"[]"}
	}
	for _, v := range values {
		c, err := match.NewCondition(kind, s.Path[3], v, true)
		if err != nil {
			r.fail(s, err)
			return
		}
		rule.Where = append(rule.Where, c)
	}
	r.add(s, rule)
}

func (r *reader) oneOf(s setting) {
	list, _ := json.Marshal(append([]string{}, s.texts()...)) // nil would become null, and not []
	r.denyUnless(s, match.OneOf, string(list))
}

func (r *reader) add(s setting, rule policy.Rule) {
	r.fail(s, rule.Check())
	r.layer.Ceiling.Rules = append(r.layer.Ceiling.Rules, rule)
}

// countPattern counts a regular expression. It returns false if the file has too many, which
// is a mistake. It is called before the expression is compiled.
func (r *reader) countPattern(s setting) bool {
	if r.patterns++; r.patterns > maxPatterns {
		r.fail(s, fmt.Errorf("the file has more than %d regular expressions", maxPatterns))
	}
	return r.patterns <= maxPatterns
}

// rule returns the rule whose table holds a setting.
func (r *reader) rule(s setting) *rule { return &r.rules[s.Index] }

func (r *reader) where(s setting) {
	for _, text := range s.texts() {
		if strings.HasPrefix(strings.TrimPrefix(text, "!"), string(match.Pattern)+":") && !r.countPattern(s) {
			return
		}
		c, err := match.ParseCondition(text)
		if err != nil {
			r.fail(s, err)
			return
		}
		r.rule(s).Where = append(r.rule(s).Where, c)
	}
}

func (r *reader) addRule(rule *rule) {
	var ok bool
	if rule.Effect, ok = effects[rule.effect]; !ok {
		r.fail(rule.setting, errors.New(`it has no effect; that is "allow", "ask" or "deny"`))
		return
	}
	if line := r.file.Line(rule.setting.Setting); line > 0 {
		rule.Origin = fmt.Sprintf("%s:%d", r.layer.Path, line)
	}
	r.fail(rule.setting, errors.Join(rule.Check(), rule.CheckExamples(rule.match, rule.notMatch)))
	switch {
	case rule.Effect != policy.Allow:
		r.layer.Ceiling.Rules = append(r.layer.Ceiling.Rules, rule.Rule)
	case r.layer.Source == policy.SourceUser:
		r.layer.Answers = append(r.layer.Answers, rule.Rule)
	case r.layer.Source == policy.SourceAdmin:
		r.fail(rule.setting, errors.New("an administrator's file says what is permitted at most, and answers no questions: effect is \"deny\" or \"ask\""))
	default:
		r.warnings = append(r.warnings, fmt.Sprintf("%s: the rule %q is ignored: only you can allow, with your own policy.toml or --allow", rule.Origin, rule.Rule))
	}
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }

func checkDirectory(s string) error {
	dir, _ := strings.CutSuffix(s, ":ro")
	if strings.Contains(dir, "**") {
		return fmt.Errorf("%.80q: a directory covers all that is in it; leave ** out", s)
	}
	_, err := match.NewCondition(match.Path, "directory", dir, false)
	return err
}

var checkPlainPath = keys.Valid(func(s string) bool {
	return path.IsAbs(s) && path.Clean(s) == s && !strings.ContainsAny(s, "*\x00")
}, "an absolute path without stars, dots and a slash at its end")

// orEmpty returns a check that accepts an empty text, and what check accepts.
func orEmpty(check func(string) error) func(string) error {
	return func(s string) error {
		if s == "" {
			return nil
		}
		return check(s)
	}
}

var checkCleanPath = keys.Valid(func(s string) bool {
	return filepath.IsAbs(s) && filepath.Clean(s) == s && !strings.ContainsRune(s, 0)
}, "an absolute path without dots and a slash at its end")

func checkHostPattern(s string) error {
	_, err := match.NewCondition(match.Hostname, "host", s, false)
	return err
}

var checkWord = keys.Valid(func(s string) bool {
	return s != "" && len(s) <= 256 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })
}, "one word")

var registryRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9.-]+(:[1-9][0-9]{0,4})?(/[a-z0-9._-]+)*$`) })

// checkRegistry checks HOST[:PORT][/PATH], with which sources of modules are compared
// literally.
func checkRegistry(s string) error {
	host, path, _ := strings.Cut(s, "/")
	if len(s) > 512 || !registryRE().MatchString(s) || slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return part == "." || part == ".." }) {
		return fmt.Errorf(`%.80q is not HOST or HOST/PATH in lower case, such as "ghcr.io/example"`, s)
	}
	name, _, _ := strings.Cut(host, ":")
	_, err := network.ParseHost(name)
	return err
}

func checkBaseURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New(`an entry is not an address such as "https://host/v1", nor "" for the provider's own`)
	}
	return nil
}

func checkDigest(s string) error {
	if hex := strings.TrimPrefix(s, "sha256:"); len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
		return fmt.Errorf(`%.80q is not "sha256:" and 64 hexadecimal digits in lower case`, s)
	}
	return nil
}

func checkModule(s string) error {
	if s == "" || s == string(tool.OriginBuiltin) {
		return nil
	}
	if err := checkDigest(s); err != nil {
		return fmt.Errorf(`%w, nor "builtin"`, err)
	}
	return nil
}

// moduleName returns a module, as a rule holds it, from a text that has passed checkModule.
func moduleName(s string) string {
	if s == "" || s == string(tool.OriginBuiltin) {
		return s
	}
	return "sha256:" + strings.TrimPrefix(s, "sha256:")
}
