import type { Server } from '#api/server.ts'
import type { App } from '#app.ts'
export async function fillDemo(_app: App, _server: Server): Promise<boolean> {
  return false
}
