import type { Setting } from '#config/basics.ts'
import { clientVariables, settingGroups } from '#config.ts'
import { codes, reasons, violationTypes } from '#lib/errors.ts'

const notice = '<!-- Written by `npm run gen`. -->\n'

export function configPage(): string {
  const groups = settingGroups.map(({ title, about, settings }) => {
    const rows = Object.values(settings).map(settingRow)
    return `## ${title}

${about === undefined ? '' : `${about}\n\n`}| Setting | Default | Meaning |
| --- | --- | --- |
${rows.join('\n')}
`
  })
  const client = Object.entries(clientVariables).map(([name, doc]) => `| \`${name}\` | ${doc} |`)
  return `${notice}
# Settings

Configure the server with environment variables, or with the options of \`pinfold serve\` named below the variables.
This serves the data folder \`/srv/pinfold\` on port 9000:

\`\`\`sh
PINFOLD_LISTEN=127.0.0.1:9000 pinfold serve --data /srv/pinfold
\`\`\`

- An option overrides the environment variable, which overrides the default. An empty variable counts as not set.
- The server does not start with an invalid or unknown setting. It reports all invalid settings at once.
- \`on\` and \`off\` are the values of switches. Lists are separated by commas.
- Former names still work, with a warning on standard error and in the log. If both names are set, their values must be equal.
- \`pinfold config\` prints this list on the command line.

${groups.join('\n')}
## Settings of client commands

Commands that call a server, such as \`pinfold login\`, \`identities\`, \`images\` and \`events\`, read these variables:

| Variable | Meaning |
| --- | --- |
${client.join('\n')}
`
}

function settingRow({ env, formerly, flag, default: fallback, defaultMeans, doc, note }: Setting<unknown>): string {
  const given = fallback === '' ? (defaultMeans ?? 'none') : `\`${fallback.replaceAll(',', ', ')}\``
  const name = `\`${env}\`${flag ? `<br>\`${flag}\`` : ''}`
  return `| ${name} | ${given} | ${doc}${note ? ` ${note}` : ''}${formerly ? ` Former name: \`${formerly}\`.` : ''} |`
}

export function errorsPage(): string {
  const rows = Object.entries(codes).map(([code, { number, http }]) => `| ${number} | \`${code}\` | ${http} |`)
  const finer = Object.entries(reasons).map(([name, { code, doc }]) => `| \`${name}\` | \`${code}\` | ${doc} |`)
  const violations = Object.entries(violationTypes).map(([name, doc]) => `| \`${name}\` | ${doc} |`)
  return `${notice}
# Errors

All errors of the API: codes, reasons and types of violations. Clients should compare \`reason\` or \`type\`, not the message:

\`\`\`json
{
  "code": 3,
  "message": "Invalid argument: name: is required",
  "details": [
    { "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "INVALID_ARGUMENT", "domain": "…", "metadata": { "requestId": "…" } },
    { "@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{ "field": "name", "description": "is required" }] }
  ]
}
\`\`\`

The response of a failed call has \`code\`, \`message\` and \`details\` (AIP-193). gRPC has the same in the trailer
\`grpc-status-details-bin\`. Every error has an \`ErrorInfo\` with the reason, the domain and the request ID. The
\`x-request-id\` header and the log of the server have this ID, too.

| Code | Name | HTTP status |
| --- | --- | --- |
${rows.join('\n')}

Three cases have a more exact HTTP status:

- 405 (with \`Allow\`) if the path exists, but not with this HTTP method
- 412 if the condition of \`If-Match\` or \`If-None-Match\` is not met
- 413 if the body is too large

| Detail | With | Content |
| --- | --- | --- |
| \`ErrorInfo\` | every error | \`reason\`: the name of the code, or one of the reasons below |
| \`BadRequest\` | \`INVALID_ARGUMENT\` | every invalid field, in the spelling of the contract, with the reason |
| \`ResourceInfo\` | \`NOT_FOUND\`, \`ALREADY_EXISTS\` | type and uid or name of the resource |
| \`PreconditionFailure\` | \`FAILED_PRECONDITION\` | violations, each with one of the types below |
| \`TermsNotAcceptedDetail\` | \`TERMS_NOT_ACCEPTED\` | the documents that the organization has to accept first |
| \`RetryInfo\` | \`UNAVAILABLE\`, \`RATE_LIMITED\` | the time to wait before the next attempt; over REST also in the \`Retry-After\` header |

| Reason | With | Meaning |
| --- | --- | --- |
${finer.join('\n')}

| Type of a violation | Meaning |
| --- | --- |
${violations.join('\n')}

The server checks permissions before it looks up the resource. A caller without the capability gets \`PERMISSION_DENIED\`
whether or not the resource exists.

\`/oauth/token\` uses the format of OAuth 2.0 instead: \`error\` and \`error_description\` (RFC 6749).
`
}
