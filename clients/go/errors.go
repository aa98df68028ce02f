package polynym

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Kinds of errors, for errors.Is. An error whose outcome is unknown is ErrOutcomeUnknown and none
// of the others.
var (
	ErrNotFound           error = kind(codes.NotFound)
	ErrAlreadyExists      error = kind(codes.AlreadyExists)
	ErrInvalidArgument    error = kind(codes.InvalidArgument)
	ErrOutOfRange         error = kind(codes.OutOfRange)
	ErrPermissionDenied   error = kind(codes.PermissionDenied)
	ErrUnauthenticated    error = kind(codes.Unauthenticated)
	ErrFailedPrecondition error = kind(codes.FailedPrecondition)
	ErrAborted            error = kind(codes.Aborted)
	ErrResourceExhausted  error = kind(codes.ResourceExhausted)
	ErrUnavailable        error = kind(codes.Unavailable)
	ErrDeadlineExceeded   error = kind(codes.DeadlineExceeded)
	ErrUnimplemented      error = kind(codes.Unimplemented)
	ErrInternal           error = kind(codes.Internal)
	ErrOutcomeUnknown           = errors.New("polynym: the outcome is unknown")
	ErrClosed                   = errors.New("polynym: the client is closed")
)

type kind codes.Code

func (k kind) Error() string { return "polynym: " + codeName(codes.Code(k)) }

// An Error is the failure of a call. Its text has no identifier and no token.
type Error struct {
	// Code is the gRPC code.
	Code codes.Code
	// Reason is what programs can rely on, such as `IDENTITY_TAKEN`. Empty if the failure is not
	// from the server: the connection was lost, or the deadline has passed.
	Reason string
	// Field is the field of the request that is invalid. Empty if there is none.
	Field string
	// Message is a text for people. It may change.
	Message string
	// RetryAfter is the delay after which the server asks to retry. Zero if it does not ask.
	RetryAfter time.Duration
	// Metadata has details of the reason, such as `limit`.
	Metadata map[string]string
	// Owner is the id of the user who owns the identifier of an IDENTITY_TAKEN. Empty if the
	// caller's role may not see it.
	Owner string
	// RequestID is the request id of the call. Empty if the request has none.
	RequestID string

	status      *status.Status
	cause       error
	fromServer  bool // The server made the status, not the transport.
	sent        bool // The request, or a part of it, has left.
	refused     bool // A proxy has refused the request.
	counted     bool // The budget has counted the loss of the connection already.
	unreachable bool // No server has seen the request.
	closed      bool // The client is closed.
	unknown     bool // The call may have changed something.
}

// Error describes the failure in a line.
func (e *Error) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("polynym: %s: %s", codeName(e.Code), e.Message)
	}
	return fmt.Sprintf("polynym: %s (%s): %s", codeName(e.Code), e.Reason, e.Message)
}

// Is reports whether the error is of a kind, such as ErrNotFound. Errors of deadlines and
// cancellation are also those of the context.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrClosed:
		return e.closed && !e.unknown
	case context.DeadlineExceeded:
		return e.Code == codes.DeadlineExceeded
	case context.Canceled:
		return e.Code == codes.Canceled && !e.closed
	}
	wanted, isKind := target.(kind)
	return isKind && codes.Code(wanted) == e.Code && !e.unknown
}

// Unwrap returns the error of the connection, for those who look for the cause. It may have
// addresses. Nil if the failure is from the server.
func (e *Error) Unwrap() error { return e.cause }

// GRPCStatus returns the status of the call, with all of its details.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// An OutcomeUnknownError is the failure of a call that may or may not have changed something. It
// wraps the [*Error] of the last attempt.
type OutcomeUnknownError struct {
	// RequestID is the request id of the call: the same call with this id is safe to repeat, for 24
	// hours. Empty if the method has no request ids.
	RequestID string

	last *Error
}

// Error describes the failure in a line.
func (e *OutcomeUnknownError) Error() string {
	return ErrOutcomeUnknown.Error() + ": " + e.last.Error()
}

// Is reports whether target is ErrOutcomeUnknown.
func (e *OutcomeUnknownError) Is(target error) bool { return target == ErrOutcomeUnknown }

// Unwrap returns the error of the last attempt.
func (e *OutcomeUnknownError) Unwrap() error { return e.last }

// GRPCStatus returns the status of the last attempt.
func (e *OutcomeUnknownError) GRPCStatus() *status.Status { return e.last.status }

// newError reads the details of a failed attempt. A lost connection is UNAVAILABLE, even if the
// transport reports another code.
func newError(ctx context.Context, err error, sent bool) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	failed, ok := status.FromError(err)
	if !ok {
		failed = status.FromContextError(err)
	}
	e := statusError(failed, sent)
	if e.fromServer {
		return e
	}
	switch {
	case e.Code == codes.Unavailable && refusedStream(e.Message):
		e.sent = false
	case sent && ctx.Err() == nil && slices.Contains(lostCodes, e.Code):
		e.Code = codes.Unavailable
	}
	isHTTP := strings.Contains(e.Message, "HTTP status code")
	e.refused = e.Code == codes.Unauthenticated || e.Code == codes.PermissionDenied ||
		isHTTP && e.Code == codes.Unimplemented // 401, 403, 404.
	if text := transportTexts[e.Code]; text != "" {
		e.Message = text
	} else if isHTTP {
		e.Message = "the answer is not that of a server of Polynym"
	}
	e.status = status.New(e.Code, e.Message)
	if ok || failed.Code() == codes.Unknown { // Not that of a context.
		e.cause = err
	}
	return e
}

// lostCodes are those that the transport may report for a lost connection.
var lostCodes = []codes.Code{codes.Canceled, codes.Internal, codes.Unknown}

// transportTexts say what has failed if the server has not.
var transportTexts = map[codes.Code]string{
	codes.Unavailable:       "the connection was lost",
	codes.DeadlineExceeded:  "the deadline has passed",
	codes.Canceled:          "the call was cancelled",
	codes.ResourceExhausted: "the message is too large",
}

// refusedStream reports whether the server has ended the stream before it saw the request. gRPC
// tells by this text alone, and only if it has happened twice.
func refusedStream(text string) bool {
	return strings.HasSuffix(text, "REFUSED_STREAM") ||
		strings.Contains(text, "server is draining the connection")
}

// closedError is the error of a call of a closed client.
func closedError(sent bool) *Error {
	e := localError(codes.Canceled, "the client is closed")
	e.closed, e.sent = true, sent
	return e
}

// unreachableError is the error of a call that no server has seen.
func (c *Client) unreachableError(cause error) *Error {
	text := unreachableText(c.servers)
	if c.connections.distrusted() {
		text += ": its certificate is not accepted"
	}
	e := localError(codes.Unavailable, text)
	e.unreachable, e.cause = true, cause
	return e
}

func unreachableText(servers []address) string {
	if len(servers) == 1 {
		return fmt.Sprintf("the server %s cannot be reached", servers[0])
	}
	var names []string
	for _, server := range servers {
		names = append(names, server.String())
	}
	return fmt.Sprintf("none of the servers %s can be reached", strings.Join(names, ", "))
}

func statusError(failed *status.Status, sent bool) *Error {
	e := &Error{Code: failed.Code(), Message: failed.Message(), status: failed, sent: sent}
	for _, detail := range failed.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			if detail.GetDomain() == "polynym" {
				e.fromServer = true
				e.Reason = detail.GetReason()
				e.Metadata = detail.GetMetadata()
				e.Owner = e.Metadata["owner"]
			}
		case *errdetails.BadRequest:
			if fields := detail.GetFieldViolations(); len(fields) > 0 {
				e.Field = fields[0].GetField()
			}
		case *errdetails.RetryInfo:
			e.RetryAfter = max(detail.GetRetryDelay().AsDuration(), 1)
		}
	}
	return e
}

// localError is an error that the client makes itself.
func localError(code codes.Code, message string) *Error {
	return &Error{Code: code, Message: message, status: status.New(code, message)}
}

func codeName(c codes.Code) string { return code.Code(c).String() }
