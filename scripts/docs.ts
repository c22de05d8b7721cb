import { clientVariables, settings } from '#config.ts'
import { codes, reasons, violationTypes } from '#lib/errors.ts'

const notice = '<!-- Written by `npm run gen`. -->\n'

export function configPage(): string {
  const rows = Object.values(settings).map(({ env, flag, default: fallback, doc }) => {
    return `| \`${env}\` | ${flag ? `\`${flag}\`` : ''} | ${fallback === '' ? '' : `\`${fallback}\``} | ${doc} |`
  })
  const client = Object.entries(clientVariables).map(([name, doc]) => `| \`${name}\` | ${doc} |`)
  return `${notice}
# Settings

A command-line flag overrides the environment variable, which overrides the default. \`pinfold serve\` refuses to start
with an invalid setting, and reports all that are invalid.

| Variable | Flag | Default | What it does |
| --- | --- | --- | --- |
${rows.join('\n')}

The client commands, such as \`pinfold auth\`, \`identities\`, \`images\` and \`events\`, read these variables instead:

| Variable | What it does |
| --- | --- |
${client.join('\n')}
`
}

export function errorsPage(): string {
  const rows = Object.entries(codes).map(([code, { number, http }]) => `| ${number} | \`${code}\` | ${http} |`)
  const finer = Object.entries(reasons).map(([name, { code, doc }]) => `| \`${name}\` | \`${code}\` | ${doc} |`)
  const violations = Object.entries(violationTypes).map(([name, doc]) => `| \`${name}\` | ${doc} |`)
  return `${notice}
# Errors

A failed call answers with \`code\`, \`message\` and \`details\` (AIP-193), the same over REST and gRPC (trailer
\`grpc-status-details-bin\`). Every error has an \`ErrorInfo\` with the reason, the domain and the request id, which the
\`x-request-id\` header and the server's log have too.

| Code | Name | HTTP status |
| --- | --- | --- |
${rows.join('\n')}

Three cases use a more exact HTTP status: 405 (with \`Allow\`) when a path has no such method, 412 when the resource is not what
\`If-Match\` or \`If-None-Match\` says, and 413 when a body is too large.

| Detail | With | What it says |
| --- | --- | --- |
| \`ErrorInfo\` | every error | \`reason\`: the name of the code, or one of the reasons below |
| \`BadRequest\` | \`INVALID_ARGUMENT\` | every field that is wrong, in the spelling of the contract |
| \`ResourceInfo\` | \`NOT_FOUND\`, \`ALREADY_EXISTS\` | type and uid or name of the resource |
| \`PreconditionFailure\` | \`FAILED_PRECONDITION\` | violations, each with one of the types below |
| \`TermsNotAcceptedDetail\` | \`TERMS_NOT_ACCEPTED\` | the documents that the organisation has to accept first |
| \`RetryInfo\` | \`UNAVAILABLE\`, \`RATE_LIMITED\` | after how long to try again; over REST the \`Retry-After\` header too |

| Reason | With | What it means |
| --- | --- | --- |
${finer.join('\n')}

| Type of a violation | What it means |
| --- | --- |
${violations.join('\n')}

Permission is decided before anything is looked up: a caller without the capability gets \`PERMISSION_DENIED\` whether or not
the resource exists.

\`/oauth/token\` answers in the words of OAuth 2.0 instead: \`error\` and \`error_description\` (RFC 6749).
`
}
