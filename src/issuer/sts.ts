import type { Handlers } from '#app.ts'
import type { RawToken, SecurityTokenService } from '#gen/pinfold/oidc/v1/security_token_pb.ts'
import { timestamp } from '#lib/timestamp.ts'
import { exchangeOf } from './people/provider-token.ts'
import { refresh } from './people/tokens.ts'

export const securityTokens: Handlers<typeof SecurityTokenService> = {
  async exchange(call, { aud, scope, scopes, cap, identity, identityProvider }) {
    const exchanged = await exchangeOf(
      call,
      { app: call.app, issuer: call.url, source: call.cause.source },
      identityProvider,
      {
        credential: call.credential,
        audiences: aud,
        // `scope` is the older parameter with a single group. If both parameters are sent, the groups of both apply.
        scopes: [...new Set([...(scope === '' ? [] : [scope]), ...scopes])],
        capabilities: cap,
        identity,
      },
    )
    call.log.info('token exchanged', { identity: exchanged.subject })
    return {
      $typeName: 'pinfold.platform.oidc.RawToken',
      token: exchanged.token,
      refreshToken: '',
      expiry: timestamp(exchanged.expiry),
    }
  },

  async exchangeRefreshToken(call, { aud, scope, scopes, cap }) {
    const wish = {
      audiences: aud,
      scopes: [...new Set([...(scope === '' ? [] : [scope]), ...scopes])],
      capabilities: cap,
    }
    const issuing = { app: call.app, issuer: call.url, source: call.cause.source }
    const { access, next } = await refresh(call, issuing, call.credential, wish)
    return {
      $typeName: 'pinfold.platform.oidc.TokenPair',
      token: rawToken(access.token, access.expiry),
      refreshToken: rawToken(next.text, next.expireTime),
    }
  },
}

function rawToken(token: string, expiry: string): RawToken {
  return { $typeName: 'pinfold.platform.oidc.RawToken', token, refreshToken: '', expiry: timestamp(expiry) }
}
