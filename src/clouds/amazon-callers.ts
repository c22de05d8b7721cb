// Finds the AWS identity that signed a request of a client. Only AWS can verify the signature (GetCallerIdentity).
import { tooMany, unavailable } from '#lib/errors.ts'
import { type Outgoing, OutgoingError } from '#lib/net/outgoing.ts'
import { memberOf } from './ask.ts'

/** Signed parts of the request, without the host: `target` has the query. None of them names the host that it is sent to. */
export type SignedRequest = { target: string; headers: Readonly<Record<string, string>>; body: string }

/** As AWS writes them: twelve digits, an ARN, and an id that is never given again. */
export type AwsCaller = { account: string; arn: string; userId: string }

export type AwsCallers = {
  /** Origin that requests are sent to, whatever their headers contain. */
  origin: string
  /** Host and region that the request must have been signed for. */
  host: string
  region: string
  /**
   * Sends the request there. `refused` is the reason for the log if there is no identity. Throws RESOURCE_EXHAUSTED if too many
   * requests are in flight from this network for this identity, for this identity, or in total. Throws UNAVAILABLE if AWS cannot
   * be reached.
   */
  identify(
    request: SignedRequest,
    from: { network: string; identity: string },
  ): Promise<AwsCaller | { refused: string }>
}

const maxAnswer = 16 * 1024
/**
 * The most requests that are in flight at once. Anybody can forge a request that only AWS can distinguish from a valid one, and
 * forgeries from one network must not lock out the identity itself.
 */
export const maxAsking = { all: 64, identity: 16, network: 2 }

/** `sts` is the origin of the Security Token Service. */
export function createAwsCallers(outgoing: Pick<Outgoing, 'post'>, sts: string): AwsCallers {
  const { origin, host, hostname } = new URL(sts)
  const asking = new Map<string, number>()
  let all = 0
  const change = (key: string, by: number) => {
    const now = (asking.get(key) ?? 0) + by
    if (now > 0) asking.set(key, now)
    else asking.delete(key)
  }
  /** Returns the function that ends the request. */
  const begin = (network: string, identity: string): (() => void) => {
    const pair = `${network} ${identity}`
    const isFull =
      all >= maxAsking.all ||
      (asking.get(identity) ?? 0) >= maxAsking.identity ||
      (asking.get(pair) ?? 0) >= maxAsking.network
    if (isFull) throw tooMany('too many token exchanges are waiting for AWS; try again in a second', 1)
    const count = (by: number) => {
      all += by
      change(identity, by)
      change(pair, by)
    }
    count(1)
    return () => count(-1)
  }
  return {
    origin,
    host,
    // The global endpoint is that of the first region.
    region: /^sts\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$/.exec(hostname)?.[1] ?? 'us-east-1',
    async identify({ target, headers, body }, { network, identity }) {
      const end = begin(network, identity)
      try {
        const answer = await outgoing.post(origin + target, { headers, body }, { maxBytes: maxAnswer })
        if (answer.status >= 500) throw unavailable(`AWS responded with HTTP ${answer.status}`)
        return answer.status === 200 ? callerOf(answer.body) : { refused: `AWS responded with HTTP ${answer.status}` }
      } catch (error) {
        throw error instanceof OutgoingError
          ? unavailable('the signed request cannot be verified, because AWS does not respond', error)
          : error
      } finally {
        end()
      }
    },
  }
}

function callerOf(answer: string): AwsCaller | { refused: string } {
  const [account, arn, userId] = ['Account', 'Arn', 'UserId'].map((name) => {
    const value = memberOf(answer, 'GetCallerIdentityResponse', 'GetCallerIdentityResult', name)
    return typeof value === 'string' && /^[\x21-\x7e]{1,2048}$/.test(value) ? value : undefined
  })
  return account && arn && userId
    ? { account, arn, userId }
    : { refused: 'the response of AWS has no account, ARN and user ID' }
}
