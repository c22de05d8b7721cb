// The settings of the compatibility profile (docs/reference/compatibility.md).

import type { Vendor } from '#lib/naming/vendor.ts'
import { setting } from './basics.ts'
import { optionalDomain, vendorToken } from './values.ts'

export const compatSettings = {
  compatVendor: setting({
    env: 'PINFOLD_COMPAT_VENDOR',
    parse: vendorToken,
    default: '',
    doc: 'The name that the clients of another product have where ours is `pinfold`, for the server to answer to it as well; see [compatibility](reference/compatibility.md).',
  }),
  compatVendorDomain: setting({
    env: 'PINFOLD_COMPAT_VENDOR_DOMAIN',
    parse: optionalDomain,
    default: '',
    doc: 'What these clients expect where errors have `pinfold.dev` or `PINFOLD_ERROR_DOMAIN`. Default: the name and `.dev`.',
  }),
}

/** Names of another product that count beside ours, if the settings have any. */
export function vendorOf(config: { compatVendor: string; compatVendorDomain: string }): Vendor | undefined {
  const { compatVendor: token, compatVendorDomain: domain } = config
  return token === '' ? undefined : { token, domain: domain || `${token}.dev` }
}
