// Codenames of Debian and Ubuntu releases, which some documents write instead of the version.

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

/** The version that a text names, be it by its codename; the text itself if it is no codename of the distribution. */
export function releaseNamed(id: string, text: string): string {
  const name = text.trim().toLowerCase()
  const known = Object.hasOwn(codenames, id) ? codenames[id]! : {}
  return Object.hasOwn(known, name) ? known[name]! : text
}

/** The distribution that a codename alone names. */
export function distributionWithCodename(text: string): string | undefined {
  return Object.keys(codenames).find((id) => Object.hasOwn(codenames[id]!, text.toLowerCase()))
}
