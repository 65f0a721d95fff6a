package main

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

var words = strings.Fields(`error warning info the quick brown fox jumps over a lazy dog while
	connection to server was refused timeout after retry user logged in from address request
	took too long cache miss for key value stored in table index rebuilt file not found`)

// text returns n lines like those of a log.
func text(n int) []byte {
	var b bytes.Buffer
	r := random(42)
	for i := range n {
		fmt.Fprintf(&b, "2026-%02d-%02d %04d", 1+r.below(12), 1+r.below(28), i%10000)
		for range 4 + r.below(10) {
			b.WriteByte(' ')
			b.WriteString(words[r.below(len(words))])
		}
		if r.below(9) == 0 {
			fmt.Fprintf(&b, " <%s@example%d.org>", words[r.below(len(words))], r.below(100))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func runFlate() (sum uint64) {
	data := text(5000)
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.DefaultCompression)
	check(err)
	_, err = w.Write(data)
	check(err)
	check(w.Close())
	sum = mix(sum, uint64(packed.Len()))
	for range 4 {
		back, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed.Bytes())))
		check(err)
		if !bytes.Equal(back, data) {
			panic("not what was packed")
		}
		sum = mix(sum, uint64(len(back)))
	}
	return sum
}

func runGrep() (sum uint64) {
	data := text(10000)
	for _, pattern := range []string{"refused timeout", "fox jumps", "no such words"} {
		for line := range bytes.Lines(data) {
			if bytes.Contains(line, []byte(pattern)) {
				sum = mix(sum, uint64(len(line)))
			}
		}
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(strings.ToUpper(line))
		if strings.HasPrefix(fields[2], "ERR") {
			sum = mix(sum, uint64(len(fields)))
		}
	}
	return sum
}

func runRegexp() (sum uint64) {
	data := text(4000)
	for _, re := range []*regexp.Regexp{
		regexp.MustCompile(`<([a-z]+)@[a-z0-9.]+>`),
		regexp.MustCompile(`^2026-(0[1-6])-\d\d .*(error|warning).*refused`),
		regexp.MustCompile(`(?i)time(out)? [a-z]+ \w+y`),
	} {
		for line := range bytes.Lines(data) {
			if m := re.FindSubmatchIndex(line); m != nil {
				sum = mix(sum, uint64(m[2]+m[1]))
			}
		}
	}
	return sum
}

type record struct {
	ID     int               `json:"id"`
	Name   string            `json:"name"`
	Score  float64           `json:"score"`
	Tags   []string          `json:"tags"`
	Labels map[string]string `json:"labels"`
	Parent *record           `json:"parent,omitempty"`
}

func runJSON() (sum uint64) {
	r := random(9)
	var records []record
	for i := range 150 {
		rec := record{ID: i, Name: words[r.below(len(words))], Score: float64(r.next()) / 1000, Labels: map[string]string{}}
		for range 5 {
			rec.Tags = append(rec.Tags, words[r.below(len(words))])
			rec.Labels[words[r.below(len(words))]] = "some \"quoted\" text \u00e9"
		}
		if i > 0 {
			rec.Parent = &record{ID: i - 1, Name: "parent"}
		}
		records = append(records, rec)
	}
	for range 5 {
		data, err := json.Marshal(records)
		check(err)
		var back []record
		check(json.Unmarshal(data, &back))
		var loose any
		check(json.Unmarshal(data, &loose))
		sum = mix(mix(sum, uint64(len(data))), uint64(len(back)+len(loose.([]any))))
		records = back
	}
	return sum
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
