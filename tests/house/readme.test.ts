/** Every command and every program in the README is run, and the two that set up are what CI runs. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { startNats } from "../support/nats_server.ts";
import { Operator } from "../support/nats_tap.ts";

const ROOT = resolve(import.meta.dir, "../..");
const text = readFileSync(join(ROOT, "README.md"), "utf8");
const blocks = [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((match) => ({
  language: match[1] as string,
  body: match[2] as string,
}));
/** What a project of one's own does beside a checkout named eddy. */
const isOwnProject = (body: string) => body.startsWith("npm install ../eddy");
const shells = blocks.filter(({ language }) => language === "sh").map(({ body }) => body.trim());
const commands = shells.filter((body) => !isOwnProject(body)).flatMap((body) => body.split("\n"));
const ownProjects = shells.filter(isOwnProject);
const programs = blocks.filter(({ language }) => language === "ts").map(({ body }) => body);

/** The NATS server of programs that need one. */
const NATS_URL = "ws://127.0.0.1:8080";

let scratch: string;
/** Programs of the README import `eddy` by its name, which works within the package. */
const inside = join(ROOT, ".eddy", `readme-${process.pid}`);

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "eddy-readme-"));
  await mkdir(inside, { recursive: true });
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
  await rm(inside, { recursive: true });
});

async function run(command: string[], cwd = ROOT): Promise<{ code: number; output: string }> {
  const child = Bun.spawn(command, {
    cwd,
    env: { ...process.env, EDDY_BROKER: `sqlite:${join(scratch, "eddy.sqlite")}`, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code: await child.exited, output: out + err };
}

test("only known languages stand in code blocks", () => {
  expect([...new Set(blocks.map(({ language }) => language))].sort()).toEqual(["", "sh", "ts"]);
  expect(commands.length).toBeGreaterThan(6);
  expect(programs.length).toBeGreaterThan(1);
});

describe("commands", () => {
  const SETS_UP = "npm ci && ";

  for (const command of commands) {
    if (command === `${SETS_UP}npm test`) {
      // This test is part of it.
      test(`${command}: is what CI runs`, () => {
        const steps = readFileSync(join(ROOT, ".ci/run"), "utf8")
          .split("\n")
          .filter((line) => /^npm /.test(line))
          .map((line) => line.replace(/ 2>&1 \| tee .*$/, ""));
        expect(steps.join(" && ")).toBe(command);
      });
      continue;
    }
    test(command, async () => {
      const { code, output } = await run([
        "bash",
        "-c",
        command.startsWith(SETS_UP) ? command.slice(SETS_UP.length) : command,
      ]);
      expect(output).not.toContain("rror:");
      expect({ code, output: code === 0 ? "" : output }).toEqual({ code: 0, output: "" });
    });
  }
});

test("a project of one's own", async () => {
  expect(ownProjects).toHaveLength(1);
  const own = join(scratch, "own");
  await mkdir(own);
  await symlink(ROOT, join(scratch, "eddy"));
  await Bun.write(join(own, "package.json"), JSON.stringify({ name: "own", private: true, type: "module" }));
  // As where nothing but node and npm is installed: bun is the project's own.
  const path = (process.env.PATH ?? "").split(":").filter((folder) => !folder.includes("node_modules"));
  const command = `export PATH=${path.map((folder) => `'${folder}'`).join(":")}\n${ownProjects[0]}`;
  const { code, output } = await run(["bash", "-ec", command], own);
  expect({ code, output: code === 0 ? "" : output }).toEqual({ code: 0, output: "" });
  expect(output).toContain("1 accepted, 0 rejected");
  const [, supervised] = /`(\S+ node_modules\/\.bin\/eddy) worker`/.exec(text) ?? [];
  const started = await run(["bash", "-ec", `${command.split("\n")[0]}\nexec ${supervised} --version`], own);
  expect(started).toEqual({ code: 0, output: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
});

describe("programs", () => {
  async function runProgram(name: string, program: string): Promise<string> {
    const file = join(inside, name);
    await Bun.write(file, program);
    const { code, output } = await run([process.execPath, file]);
    expect({ code, output: code === 0 ? "" : output }).toEqual({ code: 0, output: "" });
    return output;
  }

  for (const [index, program] of programs.entries()) {
    const name = `program_${index + 1}.ts`;
    if (program.includes(NATS_URL)) {
      test(`program ${index + 1}, with a stream of orders`, async () => {
        const server = await startNats();
        const operator = await Operator.connect(server.url);
        try {
          const stream = { name: "ORDERS", subjects: ["orders.new"], retention: "workqueue", discard: "new" };
          await operator.api("STREAM.CREATE.ORDERS", stream);
          const consumer = { durable_name: "eddy", ack_policy: "explicit" };
          const named = { stream_name: "ORDERS", config: consumer };
          await operator.api("CONSUMER.DURABLE.CREATE.ORDERS.eddy", named);
          await operator.publish("orders.new", '{"id":7}');
          const output = await runProgram(name, program.replace(NATS_URL, server.url));
          expect(output).toBe("order 7\n1 0\n");
        } finally {
          await operator.close();
          await server.stop();
        }
      });
    } else test(`program ${index + 1}`, () => runProgram(name, program).then(() => {}));
  }
});

test("programs are well typed", async () => {
  await Bun.write(
    join(inside, "tsconfig.json"),
    JSON.stringify({ extends: "../../tsconfig.json", include: ["*.ts"] }),
  );
  const { code, output } = await run(["npx", "tsc", "-p", inside]);
  expect({ code, output }).toEqual({ code: 0, output: "" });
});

test("what the heads of examples say to type needs no Bun and no Deno on the PATH", () => {
  const folder = join(ROOT, "examples");
  const lines = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(ts|toml)$/.test(name))
    .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"));
  expect(lines.filter((line) => /^ \* (npx|node_modules\/\.bin\/)\S* ?\S/.test(line)).length).toBeGreaterThan(
    3,
  );
  expect(lines.filter((line) => /^(?: \*|#) +(?:bun|deno) /.test(line))).toEqual([]);
});

test("links lead to files that are there", () => {
  const links = [...text.matchAll(/\]\(([^)#]+)\)/g)]
    .map((match) => match[1] as string)
    .filter((link) => !/^https?:/.test(link));
  expect(links.length).toBeGreaterThan(2);
  expect(links.filter((link) => !existsSync(join(ROOT, link)))).toEqual([]);
});

test("files named in the architecture section exist", () => {
  const section = text.slice(text.indexOf("## Architecture"), text.indexOf("## Figures"));
  const named = [...new Set([...section.matchAll(/`(\w+\.ts)`/g)].map((match) => match[1] as string))];
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((name) => !existsSync(join(ROOT, "src", name)))).toEqual([]);
});

test("the README speaks of the project alone", () => {
  const words = [
    ["iss", "ue #"],
    ["/wo", "rk/"],
    ["/ro", "ot/"],
    ["ses", "sion"],
    ["sub", "agent"],
  ].map((parts) => parts.join(""));
  expect(words.filter((word) => text.includes(word))).toEqual([]);
});
