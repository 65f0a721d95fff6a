package google

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
)

const maxListBytes = 4 << 20 // bytes of the list of models; the rest is not read

// Models returns the names of the server's models that can answer in a conversation, as the server
// writes them, at most 1,000 (one page); others are left out. Nil: the server has no such list,
// which is not an error. It is the cheapest request that shows whether the server runs and accepts
// the key. Nothing of a conversation is sent.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	body, err := m.Get(ctx, "/v1beta/models?pageSize=1000", maxListBytes)
	if err != nil {
		return nil, err
	}
	var list struct {
		Models boundedList[struct {
			Name    string              `json:"name"`
			Actions boundedList[string] `json:"supportedGenerationMethods"`
		}] `json:"models"`
	}
	if json.Unmarshal(body, &list) != nil {
		return nil, nil
	}
	var names []string
	for _, m := range list.Models {
		if name, ok := strings.CutPrefix(m.Name, "models/"); ok && (m.Actions == nil || slices.Contains(m.Actions, "generateContent")) {
			names = append(names, name)
		}
	}
	return names, nil
}
