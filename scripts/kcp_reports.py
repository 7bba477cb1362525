"""Shared by the timing scripts beside it: runs kcp and reads its report."""
import json
import subprocess


def run_report(kcp, device, options, inputs, runs, folder, warmup=1, answer="answer.csv"):
    """A query repeated in one process after a warm-up; (report, None) or (None, what kcp said). With answer None the pairs
    stay unwritten, where a query can do without."""
    report = f"{folder}/report.json"
    command = [kcp, "--device", device, "--quiet", "--runs", str(runs), "--warmup", str(warmup),
               "--json", report, *options.split()]
    if answer:
        command += ["--out", f"{folder}/{answer}"]
    command += inputs
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip()
    with open(report) as file:
        loaded = json.load(file)
    loaded["context"]["argv"][0] = "kcp"
    return loaded, None


def write_results(folder, name, reports, page):
    """FOLDER/NAME.json with all reports and NAME.md with the lines of a page."""
    with open(f"{folder}/{name}.json", "w") as file:
        json.dump(reports, file, indent=1)
    with open(f"{folder}/{name}.md", "w") as file:
        file.write("\n".join(page) + "\n")
