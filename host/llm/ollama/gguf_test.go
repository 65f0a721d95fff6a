package ollama

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// tinyModel is a model in Ollama's file format with known answers: each token is always
// followed by the same other one. It has a token for each byte, and one that begins each
// answer. The pieces of an answer are tokens, too: after a template that ends with
// <|call|>, the model gives the answer of that token.
func tinyModel(chatTemplate string) []byte {
	const (
		width, heads, hidden = 512, 8, 32 // at least as wide as there are tokens
		contextLength        = 8192
		begin, end           = 1, 2

		normal, unknown, control, ofByte = 1, 2, 3, 6 // types of tokens
	)
	tokens, types := []string{"<unk>", "<s>", "</s>"}, []int32{unknown, control, control}
	add := func(text string, typ int32) int {
		tokens, types = append(tokens, text), append(types, typ)
		return len(tokens) - 1
	}
	for b := range 256 {
		add(fmt.Sprintf("<0x%02X>", b), ofByte)
	}
	follows := map[int]int{}
	for _, answer := range [][]string{
		{"say", "There", " are", " two", " files", ":", " Gr", "üße", " 世界", " <&>"},
		{"call", "<tool_call>", `{"name": "glob",`, ` "arguments":`, `{"pattern":`, ` "*.c",`, ` "limit":`, ` 3,`, ` "a":`, ` 1.50}}`, "</tool_call>"},
		{"calls", "I look.", "\n<tool_call>", "\n" + `{"name":"glob",`, `"arguments":`, `{"pattern":"*.h"}}`, `{"name":"glob","arguments":`, `{"path":"src/"}}`, "\n</tool_call>"},
		{"think", "<think>", "I must", " look", " at", " it.", "</think>", "It is", " fine."},
		{"loop", "on", " and"},
	} {
		first := add("<|"+answer[0]+"|>", control)
		last := first
		for _, piece := range answer[1:] {
			next := add(strings.ReplaceAll(piece, " ", "\u2581"), normal)
			follows[last], last = next, next
		}
		if follows[last] = end; answer[0] == "loop" {
			follows[last] = first + 1
		}
	}

	var head bytes.Buffer
	put := func(v any) { binary.Write(&head, binary.LittleEndian, v) } // to a buffer, which takes all
	text := func(s string) { put(uint64(len(s))); head.WriteString(s) }
	fields := 0
	var values bytes.Buffer
	field := func(name string, typ uint32, v any) {
		outer := head
		head = values
		text(name)
		put(typ)
		switch v := v.(type) {
		case string:
			text(v)
		case []string:
			put(uint32(8))
			put(uint64(len(v)))
			for _, s := range v {
				text(s)
			}
		case []float32:
			put(uint32(6))
			put(uint64(len(v)))
			put(v)
		case []int32:
			put(uint32(5))
			put(uint64(len(v)))
			put(v)
		default:
			put(v)
		}
		values, head = head, outer
		fields++
	}
	const u32, f32, boolean, str, list = 4, 6, 7, 8, 9
	field("general.architecture", str, "llama")
	for name, n := range map[string]uint32{"context_length": contextLength, "embedding_length": width, "block_count": 1, "feed_forward_length": hidden,
		"attention.head_count": heads, "attention.head_count_kv": heads, "rope.dimension_count": width / heads, "vocab_size": uint32(len(tokens))} {
		field("llama."+name, u32, n)
	}
	field("llama.attention.layer_norm_rms_epsilon", f32, float32(1e-5))
	field("tokenizer.ggml.model", str, "llama")
	field("tokenizer.ggml.tokens", list, tokens)
	field("tokenizer.ggml.scores", list, make([]float32, len(tokens)))
	field("tokenizer.ggml.token_type", list, types)
	field("tokenizer.ggml.bos_token_id", u32, uint32(begin))
	field("tokenizer.ggml.eos_token_id", u32, uint32(end))
	field("tokenizer.ggml.add_bos_token", boolean, true)
	field("tokenizer.ggml.add_space_prefix", boolean, false)
	if chatTemplate != "" {
		field("tokenizer.chat_template", str, chatTemplate)
	}

	type tensor struct {
		name       string
		rows, cols int // no rows: a vector
		at         func(row, col int) float32
	}
	zero := func(int, int) float32 { return 0 }
	ones := func(int, int) float32 { return 1 }
	tensors := []tensor{
		{"token_embd.weight", len(tokens), width, func(r, c int) float32 { return is(r == c, 1) }},
		{"output.weight", len(tokens), width, func(r, c int) float32 { next, ok := follows[c]; return is(ok && next == r, 2) }},
		{"output_norm.weight", 0, width, ones}, {"blk.0.attn_norm.weight", 0, width, ones}, {"blk.0.ffn_norm.weight", 0, width, ones},
		{"blk.0.attn_q.weight", width, width, zero}, {"blk.0.attn_k.weight", width, width, zero}, {"blk.0.attn_v.weight", width, width, zero}, {"blk.0.attn_output.weight", width, width, zero},
		{"blk.0.ffn_gate.weight", hidden, width, zero}, {"blk.0.ffn_up.weight", hidden, width, zero}, {"blk.0.ffn_down.weight", width, hidden, zero},
	}
	head.WriteString("GGUF")
	put(uint32(3))
	put(uint64(len(tensors)))
	put(uint64(fields))
	head.Write(values.Bytes())
	offset := uint64(0)
	for _, t := range tensors {
		text(t.name)
		dims := []uint64{uint64(t.cols)}
		if t.rows > 0 {
			dims = append(dims, uint64(t.rows))
		}
		put(uint32(len(dims)))
		put(dims)
		put(uint32(0)) // of float32
		put(offset)
		offset += uint64(cmp.Or(t.rows, 1) * t.cols * 4) // a multiple of the alignment, 32
	}
	for head.Len()%32 != 0 {
		head.WriteByte(0)
	}
	out := head.Bytes()
	for _, t := range tensors {
		for r := range cmp.Or(t.rows, 1) {
			for c := range t.cols {
				out = binary.LittleEndian.AppendUint32(out, math.Float32bits(t.at(r, c)))
			}
		}
	}
	return out
}

func is(yes bool, weight float32) float32 {
	if yes {
		return weight
	}
	return 0
}
