package google

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
)

const maxListBytes = 4 << 20

// Models asks the server which models it has that answer in a conversation, which is the
// cheapest request that tells whether it is there and takes the key. Nothing of a
// conversation is sent. A server that is there and has no such list is no error, and
// names none: nil. Of the others there are at most 1,000 names, as the server has written
// them: as many as there are on a page.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	body, err := m.Get(ctx, "/v1beta/models?pageSize=1000", m.header(), maxListBytes)
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
