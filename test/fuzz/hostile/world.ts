// Server behind a proxy, as in production, with an ordinary organization and a hostile one.
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { startIssuer } from '../../support/fake-issuer.ts'
import { type Json, roleUids } from '../../support/pinfold.ts'
import { createStorage, type Env, startProcess, tokenOf } from '../../support/process.ts'
import { type Got, sendTo } from './send.ts'
import { startSinks } from './sinks.ts'

/** Address of all ordinary clients, as of a shared office. */
export const office = '198.51.100.7'
export const den = '203.0.113.66'
export const peopleAudience = 'client-id-of-pinfold'

/** A client with an identity, whose tokens are replaced before they expire. */
export type User = {
  uid: string
  /** Tokens for the API and for the registry. */
  api: string
  registry: string
  call(method: string, path: string, body?: object): Promise<Got>
  /** Sends a request to a path below `/v2/`. */
  oci(method: string, path: string, body?: Buffer | string | object, headers?: Record<string, string>): Promise<Got>
}
export type World = Awaited<ReturnType<typeof openWorld>>

const renewMs = 20 * 60_000

export async function openWorld(settings: Env) {
  const storage = await createStorage()
  const issuer = await startIssuer()
  const sinks = await startSinks()
  const env = {
    PINFOLD_LOG_LEVEL: 'error',
    PINFOLD_TRUSTED_PROXIES: '127.0.0.1',
    PINFOLD_ALLOW_INSECURE_ISSUERS: 'on',
    PINFOLD_ALLOW_INSECURE_SINKS: 'on',
    PINFOLD_ISSUERS_PRIVATE: '127.0.0.1',
    PINFOLD_SINKS_PRIVATE: '127.0.0.1',
    PINFOLD_OIDC_PROVIDERS: JSON.stringify([{ issuer: issuer.url, audience: peopleAudience }]),
    PINFOLD_ALLOW_SELF_REGISTRATION: 'on',
    ...settings,
  }
  const server = await startProcess(storage, { env })
  // The server is stopped even if this program fails.
  process.once('exit', () => server.kill('SIGKILL'))
  let closing = false
  void server.exited.then(({ code, signal }) => {
    if (closing) return
    console.log(`FAIL the server has ended (${code ?? signal}):\n${server.output.stderr.slice(-20_000)}`)
    process.exit(1)
  })
  const port = Number(new URL(server.url).port)
  const send = sendTo(port)
  const root = await tokenOf(storage)
  /** Calls the API as the operator, to prepare the test. Throws unless the call succeeds. */
  const operate = async (path: string, body: object): Promise<Json> => {
    const { status, json, bytes } = await send({ method: 'POST', path, token: root, body, from: office })
    if (status !== 200) throw new Error(`${path} answered ${status}: ${bytes}`)
    return json
  }
  const timers: NodeJS.Timeout[] = []
  const agent = new Agent({ keepAlive: true, maxSockets: 32 })

  /** Creates an identity in the organization, with this role. */
  async function user(org: string, name: string, role: string, from: string): Promise<User> {
    const claimMatch = { issuer: issuer.url, subject: name }
    const { uid } = await operate(`/iam/v2/identities/${org}`, { name, claimMatch })
    await operate(`/iam/v2/roleBindings/${org}`, { identityUid: uid, roleUid: role })
    const exchanged = async (aud: string): Promise<string> => {
      const token = await issuer.token({ sub: name, aud: server.url })
      const search = new URLSearchParams({ aud, identity: uid })
      const { status, json, bytes } = await send({
        method: 'POST',
        path: `/sts/exchange?${search}`,
        token,
        from,
        agent,
      })
      if (status !== 200) throw new Error(`the exchange of ${name} answered ${status}: ${bytes}`)
      return String(json.token)
    }
    const own = from === office ? { agent } : {}
    const one: User = {
      uid,
      api: '',
      registry: '',
      call: (method, path, body) =>
        send({ method, path, token: one.api, from, ...own, ...(body === undefined ? {} : { body }) }),
      oci: (method, path, body, headers = {}) =>
        send({
          method,
          path: path.startsWith('/') ? path : `/v2/${path}`,
          token: one.registry,
          headers,
          from,
          ...own,
          ...(body === undefined ? {} : { body }),
        }),
    }
    const renew = async () => {
      one.api = await exchanged(server.url)
      one.registry = await exchanged(new URL(server.url).host)
    }
    await renew()
    timers.push(setInterval(() => void renew().catch(() => setTimeout(renew, 5000)), renewMs))
    return one
  }

  const acme = (await operate('/iam/v2/groups/', { name: 'acme' })).uid as string
  const evil = (await operate('/iam/v2/groups/', { name: 'evil' })).uid as string
  const open = (await operate('/iam/v2/groups/', { name: 'public' })).uid as string
  return {
    storage,
    server,
    port,
    url: server.url,
    send,
    operate,
    issuer,
    sinks,
    agent,
    acme: { uid: acme, owner: await user(acme, 'acme-owner', roleUids.owner, office) },
    evil: { uid: evil, owner: await user(evil, 'evil-owner', roleUids.owner, den) },
    open: { uid: open, owner: await user(open, 'public-owner', roleUids.owner, office) },
    user,
    /** Stops the server as a service manager does. Returns its exit code and its output. */
    async close() {
      for (const timer of timers) clearInterval(timer)
      closing = true
      server.kill('SIGTERM')
      const ended = await Promise.race([server.exited, sleep(30_000)])
      await server[Symbol.asyncDispose]()
      await Promise.all([sinks.close(), issuer[Symbol.asyncDispose]()])
      return { code: ended?.code, log: server.output.stderr }
    },
  }
}
