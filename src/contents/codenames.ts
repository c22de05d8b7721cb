// Codenames of Debian and Ubuntu releases. Some documents have a codename instead of the version.

const codenames: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  debian: {
    ...{ squeeze: '6', wheezy: '7', jessie: '8', stretch: '9', buster: '10', bullseye: '11', bookworm: '12' },
    ...{ trixie: '13', forky: '14' },
  },
  ubuntu: {
    ...{ trusty: '14.04', xenial: '16.04', bionic: '18.04', focal: '20.04', jammy: '22.04', kinetic: '22.10' },
    ...{ lunar: '23.04', mantic: '23.10', noble: '24.04', oracular: '24.10', plucky: '25.04', questing: '25.10' },
  },
}

/** The version of a release, from its codename. If the text is no codename of the distribution, returns the text itself. */
export function releaseNamed(id: string, text: string): string {
  const name = text.trim().toLowerCase()
  const known = Object.hasOwn(codenames, id) ? codenames[id]! : {}
  return Object.hasOwn(known, name) ? known[name]! : text
}

/** The distribution with this codename. Undefined if there is none. */
export function distributionWithCodename(text: string): string | undefined {
  return Object.keys(codenames).find((id) => Object.hasOwn(codenames[id]!, text.toLowerCase()))
}

/** True if the releases of the distribution have codenames. */
export const hasCodenames = (id: string): boolean => Object.hasOwn(codenames, id)
