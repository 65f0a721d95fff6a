package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/kv"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

const (
	maxTasks   = 200     // for another one, a completed task is deleted
	maxContent = 2 << 10 // bytes of a task; more is an error
	prefix     = "task_" // begins an id, which is also the key in the store
)

// The status of a task.
const (
	pending    = "pending"
	inProgress = "in_progress"
	completed  = "completed"
)

var marks = map[string]string{pending: "[ ]", inProgress: "[~]", completed: "[x]"}

// task is a value of the store, with the number in its key.
type task struct {
	number  int
	Content string `json:"content"`
	Status  string `json:"status"`
}

func (t task) id() string { return prefix + strconv.Itoa(t.number) }

// line returns the task as it is listed. Its further lines are indented below the first.
func (t task) line() string {
	return fmt.Sprintf("%s %s %s", marks[t.Status], t.id(), strings.ReplaceAll(t.Content, "\n", "\n    "))
}

// store holds the functions of package kv, or substitutes in tests.
type store struct {
	get    func(key string) ([]byte, bool, error)
	set    func(key string, value []byte, ttl time.Duration) error
	delete func(key string) error
	keys   func(prefix string, limit uint32) ([]string, error)
}

var sessionStore = store{kv.Get, kv.Set, kv.Delete, kv.Keys}

func (s store) load() ([]task, error) {
	keys, err := s.keys(prefix, 2*maxTasks)
	if err != nil {
		return nil, err
	}
	tasks := make([]task, 0, len(keys))
	for _, key := range keys {
		value, ok, err := s.get(key)
		if err != nil {
			return nil, err
		}
		number, bad := strconv.Atoi(strings.TrimPrefix(key, prefix))
		if !ok || bad != nil {
			continue
		}
		t := task{number: number}
		if json.Unmarshal(value, &t) != nil || marks[t.Status] == "" { // redacting a secret has broken the JSON
			t.Content, t.Status = string(value), pending
		}
		tasks = append(tasks, t)
	}
	slices.SortFunc(tasks, func(a, b task) int { return a.number - b.number })
	return tasks, nil
}

// save stores a task. If there is no room, it deletes completed tasks, the oldest first,
// but never the task with the highest number, because that number must not be used again.
func (s store) save(t task, others []task) ([]task, error) {
	value, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	full := len(others) >= maxTasks
	for {
		var quota *kv.QuotaError
		if !full {
			if err = s.set(t.id(), value, 0); err == nil || !errors.As(err, &quota) {
				return others, err
			}
		}
		i := slices.IndexFunc(others, func(o task) bool { return o.Status == completed && o.number != others[len(others)-1].number })
		if i < 0 {
			return nil, tool.Coded("STORE_FULL", tool.IO("the list has %d tasks and no room for more, and none of them is completed; complete some with update_task", len(others)))
		}
		if err := s.delete(others[i].id()); err != nil {
			return nil, err
		}
		others = slices.Delete(others, i, i+1)
		full = len(others) >= maxTasks
	}
}

type addArgs struct {
	Content string `json:"content" desc:"What is to be done, in a sentence."`
}

type taskResult struct {
	Output string `json:"output"`
	ID     string `json:"task_id"`
	Status string `json:"status"`
	progress
}

type progress struct {
	Completed int `json:"completed"`
	Total     int `json:"total"`
}

func progressOf(tasks []task) (p progress) {
	for _, t := range tasks {
		p.Total++
		if t.Status == completed {
			p.Completed++
		}
	}
	return p
}

func (p progress) summary() string {
	if p.Total == 1 {
		return fmt.Sprintf("%d of 1 task completed", p.Completed)
	}
	return fmt.Sprintf("%d of %d tasks completed", p.Completed, p.Total)
}

func addTask(_ context.Context, in addArgs) (taskResult, error) { return sessionStore.add(in) }

func (s store) add(in addArgs) (taskResult, error) {
	content, err := checkContent(in.Content)
	if err != nil {
		return taskResult{}, err
	}
	tasks, err := s.load()
	if err != nil {
		return taskResult{}, err
	}
	t := task{number: 1, Content: content, Status: pending}
	if n := len(tasks); n > 0 {
		t.number = tasks[n-1].number + 1
	}
	if tasks, err = s.save(t, tasks); err != nil {
		return taskResult{}, err
	}
	return t.result(append(tasks, t)), nil
}

func (t task) result(all []task) taskResult {
	p := progressOf(all)
	return taskResult{t.line() + "\n" + p.summary(), t.id(), t.Status, p}
}

func checkContent(text string) (string, error) {
	switch text = strings.TrimSpace(text); {
	case text == "":
		return "", tool.InvalidInput("content is empty; say what is to be done")
	case len(text) > maxContent:
		return "", tool.InvalidInput("content has %d bytes; a task has at most %d: say it shorter, or add several tasks", len(text), maxContent)
	}
	return text, nil
}

type listResult struct {
	Output string `json:"output"`
	progress
}

func listTasks(context.Context, noArgs) (listResult, error) { return sessionStore.list() }

type noArgs struct{}

func (s store) list() (listResult, error) {
	tasks, err := s.load()
	if err != nil {
		return listResult{}, err
	}
	if len(tasks) == 0 {
		return listResult{Output: "there are no tasks; add_task adds one"}, nil
	}
	p := progressOf(tasks)
	lines := make([]string, 0, len(tasks)+1)
	for _, t := range tasks {
		lines = append(lines, t.line())
	}
	return listResult{strings.Join(append(lines, p.summary()), "\n"), p}, nil
}

type updateArgs struct {
	ID      string `json:"task_id" desc:"Such as task_1."`
	Status  string `json:"status" desc:"The new status." enum:"pending,in_progress,completed"`
	Content string `json:"content,omitempty" desc:"A new text, if it is another task now."`
}

func updateTask(_ context.Context, in updateArgs) (taskResult, error) { return sessionStore.update(in) }

func (s store) update(in updateArgs) (taskResult, error) {
	if marks[in.Status] == "" {
		return taskResult{}, tool.InvalidInput("status is %.80q; it can be pending, in_progress or completed", in.Status)
	}
	tasks, err := s.load()
	if err != nil {
		return taskResult{}, err
	}
	number, bad := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(in.ID), prefix)) // models may give the number alone
	i := slices.IndexFunc(tasks, func(t task) bool { return bad == nil && t.number == number })
	if i < 0 {
		return taskResult{}, tool.NotFound("there is no task %.80q; %s", in.ID, knownTasks(tasks))
	}
	t := tasks[i]
	t.Status = in.Status
	if in.Content != "" {
		if t.Content, err = checkContent(in.Content); err != nil {
			return taskResult{}, err
		}
	}
	tasks = slices.Delete(tasks, i, i+1)
	if tasks, err = s.save(t, tasks); err != nil {
		return taskResult{}, err
	}
	return t.result(append(tasks, t)), nil
}

// knownTasks names the existing tasks for an error. Those that are not completed come
// first, as one of them is probably meant.
func knownTasks(tasks []task) string {
	const limit = 20
	if len(tasks) == 0 {
		return "there are no tasks yet: add_task adds one"
	}
	slices.SortStableFunc(tasks, func(a, b task) int { return rank(a) - rank(b) })
	var ids []string
	for _, t := range tasks[:min(len(tasks), limit)] {
		ids = append(ids, t.id())
	}
	text := "the tasks are " + strings.Join(ids, ", ")
	if more := len(tasks) - limit; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func rank(t task) int {
	if t.Status == completed {
		return 1
	}
	return 0
}
