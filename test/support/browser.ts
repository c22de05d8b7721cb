// Browser without a screen. It keeps cookies by host, follows redirects, and submits the forms of a page.
export type Shown = { status: number; url: string; text: string; headers: Headers }
export type Browser = ReturnType<typeof openBrowser>

const page = { accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8', 'user-agent': 'a browser' }

export function openBrowser() {
  const jars = new Map<string, Map<string, string>>()
  const jarOf = (url: string) => {
    const { host } = new URL(url)
    const jar = jars.get(host) ?? new Map<string, string>()
    jars.set(host, jar)
    return jar
  }

  /** Sends one request. Does not follow redirects. */
  async function ask(url: string, init: RequestInit = {}): Promise<Shown> {
    const jar = jarOf(url)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { ...page, ...(cookie && { cookie }), ...(init.headers as Record<string, string>) }
    const res = await fetch(url, { ...init, headers, redirect: 'manual' })
    for (const line of res.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(';')
      const [name, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]
      const isGone = attributes.some((one) => /^\s*(?:max-age=0|expires=Thu, 01 Jan 1970.*)$/i.test(one))
      if (isGone) jar.delete(name)
      else jar.set(name, value)
    }
    return { status: res.status, url, text: await res.text(), headers: res.headers }
  }

  /** Follows redirects up to a page. If `stop` is true for the next URL, stops and returns this URL as `url`. */
  async function go(
    url: string,
    init: RequestInit = {},
    stop: (next: string) => boolean = () => false,
  ): Promise<Shown> {
    let shown = await ask(url, init)
    for (let hops = 0; shown.status >= 300 && shown.status < 400; hops++) {
      if (hops > 20) throw new Error(`${url} leads in a circle`)
      const next = new URL(shown.headers.get('location')!, shown.url).href
      if (stop(next)) return { ...shown, url: next }
      shown = await ask(next)
    }
    return shown
  }

  return {
    ask,
    go,
    /** Sends a form as a page of that origin would. */
    submit: (url: string, form: Record<string, string>, headers: Record<string, string> = {}) =>
      go(url, {
        method: 'POST',
        body: new URLSearchParams(form),
        headers: { 'sec-fetch-site': 'same-origin', origin: new URL(url).origin, ...headers },
      }),
    cookies: (url: string) => jarOf(url),
  }
}
