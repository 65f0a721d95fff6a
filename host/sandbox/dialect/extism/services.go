package extism

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

// Limits on the data that functions read from a plugin at a time, in bytes; more is a fault.
const (
	maxName    = 64 << 10  // name of a variable or a setting
	maxRequest = 512 << 10 // URL and headers of a request
	maxBody    = 64 << 20  // body of a request, or value of a variable
	maxMessage = 64 << 20  // log message, which is then cut
)

// config is config_get: it returns a setting of the plugin, or the placeholder of the secret
// with this name.
func (p *plugin) config(stack []uint64) error {
	key, err := p.block("the name", stack[0], maxName)
	if err != nil {
		return err
	}
	value, ok, err := p.lookupConfig(string(key))
	if stack[0] = 0; err != nil || !ok {
		return err
	}
	stack[0], err = p.put([]byte(value))
	return err
}

func (p *plugin) lookupConfig(name string) (value string, ok bool, err error) {
	if p.Host != nil && slices.ContainsFunc(p.Host.Grant.Secrets(), func(s tool.Secret) bool { return s.Name == name }) {
		value, err = p.Host.Placeholder(p.ctx, p.Account, name)
		switch services.KindOf(err) {
		case 0:
			return value, err == nil, err
		case services.NotFound: // Placeholder has warned the person
			return "", false, nil
		}
		return "", false, serviceFailure(err)
	}
	if p.Manifest == nil {
		return "", false, nil
	}
	value, ok = p.Manifest.Config[name]
	return value, ok, nil
}

// serviceFailure turns the error of a service into a failure for the caller of the tool. The
// function that the plugin has called has no way to fail.
func serviceFailure(err error) error {
	kind, ok := map[services.Kind]abi.ErrorCase{
		services.Denied: abi.Denied, services.Invalid: abi.InvalidInput, services.NotFound: abi.NotFound,
		services.TooLarge: abi.Failed, services.Protocol: abi.Failed,
	}[services.KindOf(err)]
	if !ok {
		kind = abi.Unavailable
	}
	return &failure{kind, err.Error()}
}

// maxVarBytes limits the variables of a call in bytes, with their names and varBytes for each;
// a plugin with more is ended. It is the default of Extism's own hosts.
const (
	maxVarBytes = 1 << 20
	varBytes    = 40
)

// variable is var_get.
func (p *plugin) variable(stack []uint64) error {
	name, err := p.block("the name", stack[0], maxName)
	if err != nil {
		return err
	}
	offset := uint64(0)
	if value, ok := p.vars[string(name)]; ok {
		if offset, err = p.put(value); err != nil {
			return err
		}
	}
	p.freeBlock(stack[0]) // the plugin has given the block to the function
	stack[0] = offset
	return nil
}

// setVariable is var_set. Without a value it deletes. Variables end with the call.
func (p *plugin) setVariable(stack []uint64) error {
	name, err := p.block("the name", stack[0], maxName)
	if err != nil {
		return err
	}
	key := string(name)
	size := p.varBytes
	if had, ok := p.vars[key]; ok {
		size -= varBytes + len(key) + len(had)
	}
	if stack[1] == 0 {
		delete(p.vars, key)
		p.varBytes = size
		p.freeBlock(stack[0])
		return nil
	}
	value, err := p.block("the value", stack[1], maxBody)
	if err != nil {
		return err
	}
	if size += varBytes + len(key) + len(value); size > maxVarBytes {
		return &failure{abi.Failed, "its variables have more than 1 MiB together, and no host of Extism keeps more"}
	}
	if p.vars == nil {
		p.vars = map[string][]byte{}
	}
	p.vars[key], p.varBytes = bytes.Clone(value), size
	p.freeBlock(stack[0])
	p.freeBlock(stack[1])
	return nil
}

// httpRequest is the JSON of a request. Old plugins use header instead of headers.
type httpRequest struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Header  map[string]string `json:"header"`
}

// request is http_request: it returns the body of the response. Without a response the call
// ends, as with other hosts, because the function has no way to fail.
func (p *plugin) request(stack []uint64) error {
	p.status, p.headers = 0, nil
	text, err := p.block("the request", stack[0], maxRequest)
	if err != nil {
		return err
	}
	var want httpRequest
	if err := json.Unmarshal(text, &want); err != nil {
		return fault("the request is not JSON with url, method and headers: %v", err)
	}
	req := services.Request{Method: "GET", URL: want.URL}
	if want.Method != "" {
		req.Method = strings.ToUpper(want.Method)
	}
	for _, headers := range []map[string]string{want.Header, want.Headers} {
		for name, value := range headers {
			req.Headers = append(req.Headers, [2]string{name, value})
		}
	}
	slices.SortFunc(req.Headers, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	if stack[1] != 0 {
		body, err := p.block("the body", stack[1], maxBody)
		if err != nil {
			return err
		}
		req.Body = append([]byte{}, body...) // not nil, also if it is empty
	}
	resp, err := p.Host.Fetch(p.ctx, p.Account, req)
	if err != nil {
		return serviceFailure(err)
	}
	p.status, p.headers = resp.Status, map[string]string{}
	for _, h := range resp.Headers {
		name := strings.ToLower(h[0])
		if before, ok := p.headers[name]; ok {
			h[1] = before + "," + h[1]
		}
		p.headers[name] = h[1]
	}
	p.owed += uint64(len(resp.Body)) >> costBulkShift
	offset, err := p.put(resp.Body)
	p.freeBlock(stack[0])
	p.freeBlock(stack[1])
	stack[0] = offset
	return err
}

// statusCode is http_status_code: the status of the last response, 0 if there is none.
func (p *plugin) statusCode(stack []uint64) error {
	stack[0] = uint64(p.status)
	return nil
}

// responseHeaders is http_headers: the headers of the last response as a JSON object.
func (p *plugin) responseHeaders(stack []uint64) error {
	text := []byte("{}")
	if p.headers != nil {
		var err error
		if text, err = json.Marshal(p.headers); err != nil {
			return err
		}
	}
	var err error
	stack[0], err = p.put(text)
	return err
}

// logs returns the function that logs a message at a level.
func logs(level int) func(*plugin, []uint64) error {
	return asHostCall(func(p *plugin, stack []uint64) error {
		text, err := p.block("the message", stack[0], maxMessage)
		if err != nil {
			return err
		}
		p.Host.Log(p.Account, level, abi.Head(text, hostmod.MaxLogMessage, p.Redact))
		p.freeBlock(stack[0])
		return nil
	})
}
