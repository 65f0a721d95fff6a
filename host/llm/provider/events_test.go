package provider

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestEventsOfAStream(t *testing.T) {
	tests := []struct {
		name, body string
		lines      bool
		want       []string // the last is the error; [DONE] is "done", and no error
	}{
		{"a value over several lines", "data: {\ndata:  \"a\":\ndata: 1\ndata: }\n\ndata: 2\n\n", false, []string{"{\n\"a\":\n1\n}", "2", "EOF"}},
		{"the same with CRLF", "data: {\r\ndata: \"a\":1}\r\n\r\ndata: [DONE]\r\n\r\n", false, []string{"{\n\"a\":1}", "done"}},
		{"the same with CR alone", "data: {\rdata: \"a\":1}\r\rdata: [DONE]\r\r", false, []string{"{\n\"a\":1}", "done"}},
		{"ends of lines that are mixed", "data: {\rdata: \"a\":\ndata: 1}\r\n\n\rdata: 2\r", false, []string{"{\n\"a\":\n1}", "2", "EOF"}},
		{"an LF that follows a CR is no empty line", "data: {\r\n: comment\r\ndata: }\r\n\r\n", false, []string{"{\n}", "EOF"}},
		{"a mark at the beginning, comments, fields, and no blank", "\xef\xbb\xbf: hi\nretry: 1\nid:1\nevent:x\ndata:{\n:\ndata:}\nid: 2\n\n", false, []string{"{\n}", "EOF"}},
		{"no empty line behind a value of one line", "data: 1\ndata: 2\nevent: x\ndata: [DONE]\n", false, []string{"1", "2", "done"}},
		{"no empty line behind the last value", "data: {\ndata: }", false, []string{"{\n}", "EOF"}},
		{"half a value at the end is none", "data: 1\n\ndata: {\ndata: \"a\":", false, []string{"1", "EOF"}},
		{"a value that never gets whole is an event for whoever knows it", "data: {\ndata: \"a\":\n\ndata: 2\n\n", false, []string{"{\n\"a\":", "2", "EOF"}},
		{"lines of data without any", "data:\ndata: \ndata\n\ndata: 1\n\n", false, []string{"1", "EOF"}},
		{"nothing behind [DONE]", "data: [DONE]\n\ndata: 1\n\n", false, []string{"done"}},
		{"JSON in each line", "{\"a\":\r\n1\r\n[DONE]\n2\n", true, []string{"{\"a\":", "1", "done"}},
		{"JSON instead of events", " \n{\"a\":\n1}\n", false, []string{"{\"a\":\n1}", "done"}},
		{"a list instead of events", "[{\"a\":1},\r\n2]", false, []string{`{"a":1}`, "2", "done"}},
		{"JSON that breaks off", "[1,2", false, []string{"test: the stream ended early"}},
		{"an error instead of events", `{"error":{"message":"no"}}`, false, []string{"test: no"}},
	}
	for _, tt := range tests {
		for name, in := range map[string]io.Reader{"at once": strings.NewReader(tt.body), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.body))} {
			t.Run(tt.name+", "+name, func(t *testing.T) {
				x := &Exchange{c: &Client{Options: Options{Name: "test", MaxStreamBytes: 1 << 20}}, JSONLines: tt.lines}
				e := x.newStream(in)
				var got []string
				for len(got) < 10 {
					data, err := e.next()
					if _, ok := errors.AsType[*markedEnd](err); ok {
						got = append(got, "done")
						break
					} else if err != nil {
						got = append(got, err.Error())
						break
					}
					got = append(got, string(data))
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}
