// Proxy of the environment, for commands that call a server on another machine.
import { CliError, exitCodes } from './cli-error.ts'

/** Hosts of this machine. Requests to them never go through a proxy, which could read tokens that are sent without TLS. */
const own = 'localhost,127.0.0.1,::1'

let isUsed = false

/** True if requests of this process may go through a proxy. */
export function isProxyUsed(): boolean {
  return isUsed
}

/**
 * Lets the https requests of this process use the proxy of HTTPS_PROXY, except for the hosts of NO_PROXY. The lower case names
 * have priority, as in curl. Throws CliError if the proxy is not an http or https URL.
 */
export function useProxy(env: Readonly<NodeJS.ProcessEnv>): void {
  const given = env.https_proxy || env.HTTPS_PROXY
  if (!given) return
  const url = given.includes('://') ? given : `http://${given}`
  if (!/^https?:\/\/./i.test(url) || !URL.canParse(url)) {
    const form = 'it must be the URL of a proxy, such as http://proxy.example.com:3128'
    // The value may contain a password, so the message does not repeat it.
    throw new CliError(exitCodes.config, `HTTPS_PROXY is not valid: ${form}`)
  }
  const direct = [env.no_proxy || env.NO_PROXY, own].filter(Boolean).join(',')
  process.getBuiltinModule('node:http').setGlobalProxyFromEnv({ https_proxy: url, no_proxy: direct })
  isUsed = true
}
