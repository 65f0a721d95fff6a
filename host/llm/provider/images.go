package provider

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/llm"
)

// RefusedImages are those that a server has refused, or the model behind it, by what it has said
// of them. They would be in each request from then on, and no conversation could go on
// in which there is one. See RATIONALE, "Why is an image sent behind the results, and not
// again once it was refused?" The zero value is ready; it is safe for concurrent use.
type RefusedImages struct {
	mu      sync.Mutex
	refused map[[32]byte]string
	changes int
}

// Version changes with what is refused. It is a part of that of a wire form.
func (s *RefusedImages) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.Itoa(s.changes)
}

// ImageOrText is a text or an image of a request.
type ImageOrText struct {
	Text  string
	Image *llm.Part // nil: it is a text
}

// Show are images as a request has them: each behind a line that says what it is of, or
// that line and why there is no image.
func (s *RefusedImages) Show(images []llm.Part, of string) (out []ImageOrText) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, image := range images {
		if image.Type != llm.ImagePart {
			continue
		}
		label := fmt.Sprintf("[image %d of %s]", i+1, of)
		said, refused := s.refused[sha256.Sum256(image.Data)]
		switch {
		case len(image.Data) == 0:
			out = append(out, ImageOrText{Text: fmt.Sprintf("[image %d of %s was left out to save room; read it again if you need it]", i+1, of)})
		case refused:
			out = append(out, ImageOrText{Text: label}, ImageOrText{Text: "[it could not be sent: the server refused a request with it: " + said + "]"})
		default:
			out = append(out, ImageOrText{Text: label}, ImageOrText{Image: &images[i]})
		}
	}
	return out
}

// SendWithFallback sends a request with entries. If a server refuses one with images, it is sent again
// without: if that is what it takes, these images are not sent any more.
func (s *RefusedImages) SendWithFallback(entries []*llm.Entry, send func() error) error {
	err := send()
	failure, ok := errors.AsType[*llm.ProviderError](err)
	if !ok || !aboutImages(failure) {
		return err
	}
	refused := s.refuse(entries, failure.Message)
	if len(refused) == 0 {
		return err
	}
	if send() != nil {
		s.forgive(refused)
		return err // the first one, which is the one that helps
	}
	return nil
}

// aboutImages tells an error that may be about the images of a request. Few servers
// say it in so many words, and some have no better status for it than these.
func aboutImages(failure *llm.ProviderError) bool {
	if failure.Code == llm.ContextExceeded {
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

// refuse takes the images of entries for refused, and returns those that were not before.
func (s *RefusedImages) refuse(entries []*llm.Entry, said string) (refused [][32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = map[[32]byte]string{}
	}
	refuse := func(p llm.Part) {
		sum := sha256.Sum256(p.Data)
		if _, before := s.refused[sum]; p.Type == llm.ImagePart && len(p.Data) > 0 && !before {
			s.refused[sum] = said
			refused = append(refused, sum)
		}
	}
	for _, e := range entries {
		for _, p := range e.Parts {
			refuse(p)
			for _, image := range p.Images {
				refuse(image)
			}
		}
	}
	if refused != nil {
		s.changes++
	}
	return refused
}

func (s *RefusedImages) forgive(refused [][32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sum := range refused {
		delete(s.refused, sum)
	}
	s.changes++
}
