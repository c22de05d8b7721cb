import { parentOf, top } from '#lib/uid.ts'
import { send } from '../framework/api-client.ts'
import { CliError, exitCodes } from '../framework/cli-error.ts'
import type { Command } from '../framework/command.ts'
import { withLock } from '../framework/file-lock.ts'
import { confirm, yesOption } from '../framework/outputs.ts'
import { callerToken, sessionOf, sessionOptions } from '../framework/session.ts'
import { lockOfPerson, removePerson, removeProfile, removeTokens } from '../framework/user-files.ts'

export const deleteAccount: Command = {
  details: `For users. An identity of a workload is deleted with "pinfold identities delete". The last owner of an organization has to
add another owner first. Images that you have pushed are not deleted.`,
  options: [yesOption, ...sessionOptions],
  async run(terminal, options) {
    const session = sessionOf(terminal, options)
    const { api, identity, files } = session
    const token = await callerToken(terminal, session)
    const who = await send('GET', new URL('/auth/v1/ok', api), token)
    const [subject, email] = [String(who.subject), String(who.email ?? '')]
    if (parentOf(subject) !== top) {
      const instead = `to delete the identity: pinfold identities delete ${subject}`
      throw new CliError(
        exitCodes.refused,
        `nothing was deleted: ${subject} is the identity of a workload and has no account\n${instead}`,
      )
    }
    const account = `the account ${email === '' ? subject : `${email} (${subject})`} at ${api}`
    await confirm(terminal, options.yes, `delete ${account}, with all its roles and sessions`)
    await send('DELETE', new URL(`/auth/v1/delete/${subject}`, api), token)
    if (subject === identity) {
      await withLock(lockOfPerson(files, api), async () => removePerson(files, api))
      removeTokens(files)
      removeProfile(files)
    }
    terminal.print(`deleted ${account}`)
    return exitCodes.ok
  },
}
