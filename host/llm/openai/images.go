package openai

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/sashabaranov/go-openai"

	"github.com/stockade-dev/stockade/host/llm"
)

// wireImages are parts of a message, each behind a line that says what it is of. Of those
// that were left out there is the line.
func wireImages(parts []llm.Part, of string) (out []openai.ChatMessagePart) {
	for i, part := range parts {
		if part.Type != llm.ImagePart {
			continue
		}
		label := fmt.Sprintf("[image %d of %s]", i+1, of)
		if len(part.Data) == 0 {
			label = fmt.Sprintf("[image %d of %s was left out to save room; read it again if you need it]", i+1, of)
		}
		out = append(out, openai.ChatMessagePart{Type: openai.ChatMessagePartTypeText, Text: label})
		if len(part.Data) > 0 {
			url := "data:" + part.Mime + ";base64," + base64.StdEncoding.EncodeToString(part.Data)
			out = append(out, openai.ChatMessagePart{Type: openai.ChatMessagePartTypeImageURL, ImageURL: &openai.ChatMessageImageURL{URL: url}})
		}
	}
	return out
}

// userMessage is a message of a text and what goes with it.
func userMessage(text string, parts []openai.ChatMessagePart) openai.ChatCompletionMessage {
	m := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: text}
	if len(parts) > 0 {
		m.Content = ""
		m.MultiContent = append([]openai.ChatMessagePart{{Type: openai.ChatMessagePartTypeText, Text: text}}, parts...)
	}
	return m
}

// refusals are the images that the server does not take, or the model behind it, by what
// it has said of them. They would be in each request from then on, and no conversation
// could go on in which there is one. See RATIONALE, "Why is an image sent behind the
// results, and not again once it was refused?"
type refusals struct {
	mu sync.Mutex
	of map[[32]byte]string
}

// refusesImages tells an error that may be about the images of a request. Few servers
// say it in so many words, and some have no better status for it than these.
func refusesImages(failure *llm.ProviderError) bool {
	if strings.Contains(failure.Code, "context_length") {
		return false
	}
	switch failure.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	case http.StatusNotFound, http.StatusInternalServerError, http.StatusNotImplemented:
		return strings.Contains(strings.ToLower(failure.Message), "image")
	}
	return false
}

// add keeps that the images of a request are refused.
func (r *refusals) add(messages []openai.ChatCompletionMessage, said string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[[32]byte]string{}
	}
	for _, m := range messages {
		for _, part := range m.MultiContent {
			if part.ImageURL != nil {
				r.of[sha256.Sum256([]byte(part.ImageURL.URL))] = said
			}
		}
	}
}

// without is the messages without the images that were refused before.
func (r *refusals) without(messages []openai.ChatCompletionMessage) []openai.ChatCompletionMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.of) == 0 {
		return messages
	}
	return replaceImages(messages, func(url string) (string, bool) {
		said, ok := r.of[sha256.Sum256([]byte(url))]
		return said, ok
	})
}

func hasImages(messages []openai.ChatCompletionMessage) bool {
	for _, m := range messages {
		for _, part := range m.MultiContent {
			if part.ImageURL != nil {
				return true
			}
		}
	}
	return false
}

// replaceImages is the messages without those images of which refused says why. One that
// has none any more is text, which is all that some servers know.
func replaceImages(messages []openai.ChatCompletionMessage, refused func(url string) (said string, ok bool)) []openai.ChatCompletionMessage {
	out := make([]openai.ChatCompletionMessage, len(messages))
	for i, m := range messages {
		out[i] = m
		if m.MultiContent == nil {
			continue
		}
		parts, texts, images := []openai.ChatMessagePart{}, []string{}, false
		for _, part := range m.MultiContent {
			if part.ImageURL != nil {
				if said, ok := refused(part.ImageURL.URL); ok {
					part = openai.ChatMessagePart{Type: openai.ChatMessagePartTypeText, Text: "[it could not be sent: the server refused a request with it: " + said + "]"}
				} else {
					images = true
				}
			}
			parts, texts = append(parts, part), append(texts, part.Text)
		}
		if out[i].MultiContent = parts; !images {
			out[i].MultiContent, out[i].Content = nil, strings.Join(texts, "\n")
		}
	}
	return out
}
