// Package session keeps the record of a session: an append-only list of events, chained by hashes.
//
// An [Event] has a [Header] and a body. The chain covers the header, but only a salted digest
// of the body. So a body can be deleted later (because of a secret, or at a person's request),
// and the chain still holds. Each event has two links. One leads to the preceding event in the
// store, so that a session cannot vanish from the store unnoticed. The other leads to the
// preceding event in its session, so that an exported session can be verified alone.
//
// A [Store] keeps events. A [Log] is the view of one running session on a store, and makes
// its events. When [Log.Append] has succeeded, the events are on disk: the intent of a call
// is durable before the call has an effect. A store also keeps preimages: the
// contents of files before a call changed them. They are found by the hashes in the events,
// and the oldest make room for new ones.
package session
