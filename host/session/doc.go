// Package session is the record of what happened: an append-only list of
// events, chained by hashes.
//
// An [Event] has a [Header], which the chain covers, and a body, of which the
// chain covers only a salted digest, so that a body can be deleted later (a
// secret, a person's request) and the chain still holds. Each event is linked
// twice: to the event before it in the store, so that a session cannot vanish
// from the store unseen, and to the event before it in its session, so that
// one exported session can be verified by itself.
//
// A [Store] keeps events; a [Log] is the view that one running session has of
// a store, and the one way in which events come into being. When [Log.Append]
// returns, the events are on disk: a call's intent is durable before its effect.
// A store also keeps images: what files were like that a call was about to change, by
// the hashes that the events have, as far as there is room for them.
package session
