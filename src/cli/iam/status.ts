// Command that shows whether the server is ready, and who is signed in.

import { jsonText, plain, table } from '#lib/terminal/plain-text.ts'
import { actsAsOperator, apiReader, callerOptions } from '../framework/api-pages.ts'
import { CliError, exitCodes } from '../framework/cli-error.ts'
import { type Command, outputOption } from '../framework/command.ts'
import { httpCall } from '../framework/http-call.ts'
import { claimsOf, sessionOf } from '../framework/session.ts'
import { unreachableReason } from '../framework/unreachable.ts'

const timeoutMs = 10_000

export const status: Command = {
  details: 'Exits with 69 if the server cannot be reached or is not ready. Being signed out is not an error.',
  options: [outputOption, ...callerOptions],
  async run(terminal, options) {
    const operator = actsAsOperator(terminal, options) ? await apiReader(terminal, options) : undefined
    const { api, identity } = operator ? { api: operator.origin, identity: 'operator' } : sessionOf(terminal, options)
    const url = new URL('/readyz', api)
    const answer = await httpCall(url, { method: 'GET', headers: { 'user-agent': 'pinfold' }, timeoutMs }).catch(
      (error: unknown) => {
        const { says, next } = unreachableReason(error)
        const message = `${api} cannot be reached: ${says}${next && `\n${next}`}`
        throw new CliError(exitCodes.unavailable, message, error)
      },
    )
    const ready = answer.status === 200
    const message = answer.text.trim().slice(0, 1000)
    const given = operator ? undefined : terminal.env.PINFOLD_TOKEN
    const signedInAs = given ? claimsOf(given)?.subject : identity
    if (options.output === 'json') {
      terminal.print(jsonText({ api, ready, message, ...(signedInAs && { identity: signedInAs }) }, 2))
    } else {
      const rows = [
        ['server', api],
        ['ready', ready ? 'yes' : `no (${answer.status}): ${plain(message)}`],
        [
          'signed in as',
          signedInAs || (given ? 'unknown: PINFOLD_TOKEN is not a valid token' : 'nobody; to sign in: pinfold login'),
        ],
      ]
      for (const line of table(rows)) terminal.print(line)
    }
    return ready ? exitCodes.ok : exitCodes.unavailable
  },
}
