import { isUid, operatorUid } from '#lib/uid.ts'
import { type Command, exitCodes } from '../shape/command.ts'
import { configOf, settingOptions } from '../shape/settings.ts'

export const token: Command = {
  name: 'token',
  summary: 'Print a bearer token for the operator or an identity, valid for an hour',
  details: `Works beside a running server, and after the first start without one. The token names the URL that was last
served, or PINFOLD_URL where that is set. Whoever can run this can do everything, so guard the data folder and the master key.`,
  options: [
    ...settingOptions('data', 'database'),
    { flags: '--identity <uid>', summary: 'The identity that the token is for; the operator unless given' },
    {
      flags: '--audience <audience>',
      summary: "Who accepts the token; the API unless given, 'registry' for the registry",
    },
  ],
  async run(terminal, options) {
    const config = { ...configOf(terminal.env, options), logLevel: 'warn' as const }
    const [{ openIssuer }, { readFact }, { maxLifetime, signAccessToken }] = await Promise.all([
      import('#open-issuer.ts'),
      import('#db/facts.ts'),
      import('#issuer/sign-token.ts'),
    ])
    const app = await openIssuer(config)
    await using _closing = { [Symbol.asyncDispose]: () => app.close() }
    const identity = options.identity as string | undefined
    if (identity !== undefined) {
      const { identityExists } = await import('#domains/iam/identities/identities.service.ts')
      if (!isUid(identity) || !(await identityExists(app.db, identity))) {
        terminal.say(`pinfold: there is no identity ${identity}`)
        return exitCodes.failed
      }
    }
    const issuer = config.url || (await readFact(app.db, 'url'))
    if (!issuer) {
      terminal.say('pinfold: nothing has been served from this database yet; start the server, or set PINFOLD_URL')
      return exitCodes.failed
    }
    const asked = (options.audience as string | undefined) ?? issuer
    const audience = asked === 'registry' ? new URL(issuer).host : asked
    const input = { issuer, subject: identity ?? operatorUid, audience, now: app.clock(), lifetime: maxLifetime }
    terminal.print(await signAccessToken(app.keyring, input))
    return exitCodes.ok
  },
}
