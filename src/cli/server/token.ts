import type { App } from '#app.ts'
import { isUid, operatorUid } from '#lib/uid.ts'
import { exitCodes } from '../framework/cli-error.ts'
import type { Command, Options, Terminal } from '../framework/command.ts'
import { configOf, settingOptions } from '../framework/settings.ts'

export const token: Command = {
  details: `Works with a running server and, after its first start, also while it is stopped. The issuer of the token is PINFOLD_URL or,
if that is not set, the last URL of the server. No sign-in is needed, so protect the data folder and the master key.`,
  options: [
    ...settingOptions('data', 'database'),
    {
      flags: '--identity <uid>',
      summary: 'Identity that the token is for: uid, name or GROUP/NAME; default: the operator',
    },
    {
      flags: '--audience <audience>',
      summary: "Audience of the token; 'registry' for the registry; default: the API",
    },
  ],
  async run(terminal, options) {
    const config = { ...configOf(terminal, options), logLevel: 'warn' as const }
    const [{ openIssuer }, { readFact }, { maxLifetime, signAccessToken }] = await Promise.all([
      import('#open-issuer.ts'),
      import('#db/facts.ts'),
      import('#issuer/sign-token.ts'),
    ])
    const app = await openIssuer(config).catch(async (error: Error) => {
      if (error.name !== 'NotServedYet') throw error
      const { NeverServed } = await import('../framework/operator.ts')
      throw new NeverServed(config, error.message)
    })
    await using _closing = { [Symbol.asyncDispose]: () => app.close() }
    const given = options.identity as string | undefined
    const identity = given === undefined ? undefined : await identityNamed(terminal, options, app, given)
    if (given !== undefined && identity === undefined) {
      terminal.say(`pinfold: there is no identity ${given}; to list the identities: pinfold identities list`)
      return exitCodes.failed
    }
    const issuer = config.url || (await readFact(app.db, 'url'))
    if (!issuer) {
      terminal.say(
        'pinfold: no token was created: no server has used this database yet; start the server, or set PINFOLD_URL',
      )
      return exitCodes.failed
    }
    const asked = (options.audience as string | undefined) ?? issuer
    const audience = asked === 'registry' ? new URL(issuer).host : asked
    const input = { issuer, subject: identity ?? operatorUid, audience, now: app.clock(), lifetime: maxLifetime }
    terminal.print(await signAccessToken(app.keyring, input))
    return exitCodes.ok
  },
}

/** Finds the uid of an identity by its uid or its name. Returns `undefined` if it does not exist. */
async function identityNamed(
  terminal: Terminal,
  options: Options,
  { db }: Pick<App, 'db'>,
  given: string,
): Promise<string | undefined> {
  if (isUid(given)) {
    const { identityExists } = await import('#domains/iam/identities/identities.service.ts')
    return (await identityExists(db, given)) ? given : undefined
  }
  const [{ withOperator }, { findIdentity, NameNotFound }] = await Promise.all([
    import('../framework/operator.ts'),
    import('../framework/names.ts'),
  ])
  return withOperator(terminal, options, (api) => findIdentity(api, given)).catch((error: unknown) => {
    if (!(error instanceof NameNotFound)) throw error
    return undefined
  })
}
