// Checks if a cloud account trusts us: one attempt to get credentials there, as the cloud documents it, with a token that we
// sign. The credentials are thrown away.
import type { Outgoing } from '#lib/net/outgoing.ts'
import { checkAmazon } from './amazon.ts'
import { checkAzure } from './azure.ts'
import type { Assert, CloudAccount, CloudAnswer, CloudEndpoints } from './cloud-account.ts'
import { checkGoogle } from './google.ts'

export type Clouds = {
  /** `group` is the one that checks, and the subject of the signed token. Never rejects because of the cloud's answer. */
  check(account: CloudAccount, group: string, assert: Assert): Promise<CloudAnswer>
}

export function createClouds(outgoing: Pick<Outgoing, 'post'>, endpoints: CloudEndpoints): Clouds {
  return {
    check(account, group, assert) {
      const asking = { outgoing, endpoints, group, assert }
      switch (account.cloud) {
        case 'amazon':
          return checkAmazon(asking, account)
        case 'google':
          return checkGoogle(asking, account)
        case 'azure':
          return checkAzure(asking, account)
      }
    },
  }
}
