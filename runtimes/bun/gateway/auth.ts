import { timingSafeEqual } from "node:crypto";

/**
 * Makes a check of a request's token, `Authorization: Bearer TOKEN` or `?_token=TOKEN`. It compares digests in constant time, so
 * neither the token's text nor its length shows in how long a refusal takes.
 */
export function tokenCheck(token: string): (request: Request) => boolean {
  const expected = Bun.SHA256.hash(token) as Uint8Array;
  return (request) => {
    const header = request.headers.get("authorization");
    let given = "";
    if (header !== null) given = /^bearer /i.test(header) ? header.slice(7) : "";
    else if (request.url.includes("_token=")) given = new URL(request.url).searchParams.get("_token") ?? "";
    return timingSafeEqual(Bun.SHA256.hash(given) as Uint8Array, expected);
  };
}
